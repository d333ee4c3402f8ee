#include "actors/health_monitor/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/kit/fleet/verdicts.hpp"
#include "cluster-config/policy/compile.hpp"

namespace signalbox::health_monitor {

namespace {

/// Lateness of a wake beyond this was the monitor's own doing.
constexpr Duration own_lateness = 20ms;

using kit::is_accused;

}  // namespace

Machine::Machine(Options options)
    : options_(std::move(options)),
      policy_(std::make_shared<policy::CompiledPolicy>()),
      sets_(kit::ejection_sets(options_.table)) {}

const kit::RoleInfo& Machine::role_info() {
  static constexpr std::string_view hears[] = {"engine_signal", "outcome_report", "policy",
                                               "order",         "beat",           "keep_alive"};
  static constexpr std::string_view says[] = {"health_verdict", "alert", "order_receipt"};
  static constexpr kit::RoleInfo info{Role::health_monitor, "decides which engines may serve, and why", hears,
                                      says};
  return info;
}

void Machine::on(const schema::Delivery& delivery, Instant now, Effects& effects) {
  if (delivery.envelope.source != options_.id) {
    // What was not heard meanwhile was not silent.
    if (hears_nobody_for(options_.hush, now)) forgive(now - heard_anything_);
    heard_anything_ = now;
  }
  watch_.hear(delivery, now);
  if (const auto* signal = std::get_if<schema::EngineSignal>(&delivery.message)) {
    if (const auto row = kit::find_engine(options_.table, signal->engine); row && started_)
      rows_[row->at()].patient.hear(*signal, delivery.envelope.source, now - delivery.age);
  } else if (const auto* report = std::get_if<schema::OutcomeReport>(&delivery.message)) {
    hear_outcomes(*report, now);
  } else if (const auto* policy = std::get_if<schema::Policy>(&delivery.message)) {
    hear_policy(*policy);
  } else if (const auto* order = std::get_if<schema::Order>(&delivery.message)) {
    hear_order(*order, effects);
  } else if (std::holds_alternative<schema::Beat>(delivery.message)) {
    beats_[delivery.envelope.source] = now;
  }
}

void Machine::hear_outcomes(const schema::OutcomeReport& report, Instant now) {
  if (report.table != options_.table.content) return;
  for (const auto& row : report.engines)
    if (row.engine.at() < rows_.size()) rows_[row.engine.at()].patient.hear(row, now);
}

/// A policy that does not compile here is its keeper's alert; the numbers in force stay.
void Machine::hear_policy(const schema::Policy& policy) {
  if (policy.hash == policy_->hash) return;
  if (auto compiled = policy::compile_text(policy.text, policy.name))
    policy_ = std::make_shared<policy::CompiledPolicy>(*std::move(compiled));
}

void Machine::hear_order(const schema::Order& order, Effects& effects) {
  const bool drain = order.kind == schema::OrderKind::drain_engine;
  if (!drain && order.kind != schema::OrderKind::undrain_engine) return;
  if (order.target != options_.id && order.target.str() != "all") return;
  const auto row = kit::find_engine(options_.table, order.engine);
  if (row && started_) rows_[row->at()].patient.set_drained(drain);
  effects.say(
      schema::OrderReceipt{Role::health_monitor, options_.id, order.id, row.has_value() && started_,
                           row ? fmt::format("{} {}", order.engine, drain ? "is drained" : "may serve again")
                               : fmt::format("no engine '{}' in the fleet table", order.engine)});
}

void Machine::on(const Input& answer, Instant now, Effects&) {
  if (const auto open = probing_.extract(answer.number); !open.empty())
    rows_[open.mapped()].patient.probes().took(answer, now);
}

void Machine::on_wake(Instant now, Effects& effects) {
  if (!started_) {
    started_ = true;
    const std::size_t engines = options_.table.engines.size();
    for (std::size_t i = 0; i < engines; ++i) {
      const Duration turn =
          options_.probe * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(engines);
      rows_.push_back({Patient(now, Probes(options_.probe, now + turn)), {}, 0, false, never_yet, true});
    }
  } else if (now - due_ > own_lateness) {
    forgive(now - due_);
    heard_anything_ += heard_anything_ == never_yet ? Duration{} : now - due_;
  }
  if (now >= due_) {
    look(now, effects);
    due_ = now + options_.look;
  }
  effects.wake_at(due_);
}

/// Nobody is held to what this process could not hear in that time.
void Machine::forgive(Duration lateness) {
  for (Row& row : rows_) row.patient.forgive(lateness);
  for (auto& [id, heard] : beats_) heard += lateness;
  watch_.forgive(lateness);
}

void Machine::look(Instant now, Effects& effects) {
  const bool was_isolated = std::exchange(isolated_, hears_nobody_for(policy_->stale.signal_hard, now));
  if (!isolated_ && heard_anything_ != never_yet && !hears_nobody_for(options_.hush, now)) {
    std::vector<Finding> findings;
    for (const Row& row : rows_)
      findings.push_back(row.patient.find(proxy_lives(row.patient.proxy(), now), policy_->stale, now));
    for (std::size_t i = 0; i < rows_.size(); ++i)
      rows_[i].doubted = findings[i].state != HealthState::ready || is_accused(rows_[i].patient.state()) ||
                         rows_[i].patient.misread();
    cap_ejections(findings);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      row.changed |= row.patient.settle(findings[i], now);
      row.finding = std::move(findings[i]);
      const double factor = row.patient.capacity_factor(policy_->health, row.finding, now);
      row.changed |= factor != row.factor;
      row.factor = factor;
    }
  }
  if (was_isolated != isolated_)
    for (Row& row : rows_) row.changed = true;
  if (heard_anything_ != never_yet) probe(now, effects);
  say_verdicts(now, effects);
  alerts(now, effects);
}

void Machine::probe(Instant now, Effects& effects) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const auto kind = row.patient.probes().due(row.doubted, row.patient.idle(now), now);
    if (!kind) continue;
    Probe probe = probe_of(EngineIndex(i), *kind);
    row.patient.probes().started(*kind, probe.number = ++probes_, now);
    std::erase_if(probing_, [&](const auto& open) { return open.second == i; });
    probing_.emplace(probe.number, i);
    effects.command(std::move(probe));
  }
}

Probe Machine::probe_of(EngineIndex engine, ProbeKind kind) const {
  const schema::EngineRow& row = options_.table.engines[engine.at()];
  Probe out;
  out.kind = kind;
  out.engine = engine;
  out.timeout = Probes::timeout_of(kind);
  if (kind == ProbeKind::health) {
    out.url = row.url + (row.kind == EngineKind::openai ? "/v1/models" : "/health");
  } else {
    out.url = row.url + "/v1/completions";
    out.post = fmt::format(R"({{"model":"{}","prompt":"1","max_tokens":1}})", row.models.front());
  }
  return out;
}

/// Within each set of engines that serve a model, at most the policy's share (but at least one engine) is taken out;
/// one that looks well again but is still held out counts.
void Machine::cap_ejections(std::vector<Finding>& findings) const {
  for (const kit::EjectionSet& each : sets_) {
    const auto& set = each.engines;
    const std::size_t most = each.most_out(policy_->eject);
    std::vector<std::size_t> out;
    for (const std::size_t i : set)
      if (!findings[i].confirmed && (is_accused(findings[i].state) || is_accused(rows_[i].patient.state())))
        out.push_back(i);
    if (out.size() <= most) continue;
    // Those that are out already stay out; then who fell first, then by place in the table.
    std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t i) {
        const bool is_out = is_accused(rows_[i].patient.state());
        return std::pair(!is_out, is_out ? rows_[i].patient.since() : end_of_time);
      };
      return key(a) < key(b);
    });
    for (std::size_t k = most; k < out.size(); ++k) {
      Finding& finding = findings[out[k]];
      if (!is_accused(finding.state)) continue;
      finding.detail = fmt::format("{}; {} of {} engines of its model are out already{}", finding.detail,
                                   most, set.size(), each.whole ? "" : " in its region");
      finding.state = HealthState::degraded;
      finding.evidence = schema::Evidence::ejection_capped;
    }
  }
}

void Machine::say_verdicts(Instant now, Effects& effects) {
  if (heard_anything_ == never_yet) return;  // it knows nothing yet
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!row.changed && now < row.say_at) continue;
    const EngineName& engine = options_.table.engines[i].name;
    if (row.changed)
      effects.note("verdict",
                   fmt::format("{} is {}: {}", engine, name_of(row.patient.state()), row.finding.detail));
    effects.say(schema::HealthVerdict{engine, row.patient.incarnation(), row.patient.state(), row.factor,
                                      now - row.patient.since(), row.finding.evidence,
                                      row.finding.detail.substr(0, 500), std::min(row.finding.suspicion, 1e6),
                                      isolated_});
    row.changed = false;
    row.say_at = now + options_.repeat;
  }
}

void Machine::alerts(Instant now, Effects& effects) {
  alerts_.repeat_due(now, effects);
  const std::string& self = options_.id.str();
  alerts_.set(isolated_, kit::AlertName::monitor_isolated, "the monitor hears nobody; its verdicts are held",
              self, now, effects);
  std::size_t out = 0;
  std::string names, silent, panicking;
  const auto add = [](std::string& list, const std::string& word) {
    if (list.size() < 200) list += (list.empty() ? "" : ", ") + word;
  };
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const EngineName& engine = options_.table.engines[i].name;
    if (rows_[i].patient.silence(now) > policy_->stale.signal_hard) add(silent, engine.str());
    if (!is_accused(rows_[i].patient.state())) continue;
    ++out;
    add(names, engine.str());
  }
  for (const kit::EjectionSet& set : sets_) {
    const std::size_t all = set.engines.size(), lost = out_of(set);
    if (set.whole && static_cast<double>(all - lost) < policy_->eject.panic_below * static_cast<double>(all))
      add(panicking, fmt::format("{} ({} of {} engines out)", set.model, lost, all));
  }
  alerts_.set(!panicking.empty(), kit::AlertName::panic,
              fmt::format("too few engines look ready; suspicion is ignored by routers: {}", panicking), self,
              now, effects);
  alerts_.set(out > 0, kit::AlertName::engines_out,
              fmt::format("{} of {} engines are out: {}", out, rows_.size(), names), self, now, effects);
  alerts_.set(
      !isolated_ && !silent.empty(), kit::AlertName::signals_stale,
      fmt::format("no signal for over {:.0f} s of {}", to_seconds(policy_->stale.signal_hard), silent), self,
      now, effects);
  if (!isolated_) watch_.alerts(alerts_, self, now, effects);
}

std::size_t Machine::out_of(const kit::EjectionSet& set) const {
  return static_cast<std::size_t>(std::count_if(set.engines.begin(), set.engines.end(), [&](std::size_t i) {
    return is_accused(rows_[i].patient.state());
  }));
}

bool Machine::hears_nobody_for(Duration silence, Instant now) const {
  return heard_anything_ != never_yet && now - heard_anything_ > silence;
}

bool Machine::proxy_lives(const ProcessName& proxy, Instant now) const {
  const auto beat = beats_.find(proxy);
  return beat != beats_.end() && now - beat->second <= policy_->stale.signal_hard;
}

View Machine::view() const {
  View out;
  out.isolated = isolated_;
  std::size_t ready = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const HealthState state = rows_[i].patient.state();
    ready += state == HealthState::ready ? 1 : 0;
    out.engines.push_back(
        {options_.table.engines[i].name, state, rows_[i].finding.evidence, rows_[i].factor});
  }
  out.standing.ready = heard_anything_ != never_yet && !isolated_;
  out.standing.state =
      isolated_ ? "isolated: hears nobody" : fmt::format("{} of {} engines ready", ready, rows_.size());
  out.standing.policy = policy_->hash;
  return out;
}

}  // namespace signalbox::health_monitor
