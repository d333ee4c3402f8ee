#include "actors/feedback_balancer/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "actors/kit/fleet/terms.hpp"
#include "cluster-config/policy/compile.hpp"

namespace signalbox::feedback_balancer {

namespace {
constexpr Duration table_every = 10s;
}

Machine::Machine(Options options)
    : options_(std::move(options)),
      table_(std::make_shared<const schema::FleetTable>(options_.table)),
      scores_(table_->engines.size(), options_.tuning) {}

const kit::RoleInfo& Machine::role_info() {
  static constexpr std::string_view hears[] = {"engine_signal",  "engine_profile", "engine_farewell",
                                               "health_verdict", "outcome_report", "policy"};
  static constexpr std::string_view says[] = {"fleet_table", "routing_snapshot", "keep_alive"};
  static constexpr kit::RoleInfo info{
      Role::feedback_balancer, "nudges weights after smoothed scores, as balancers used to", hears, says};
  return info;
}

void Machine::on(const schema::Delivery& delivery, Instant now, Effects& effects) {
  picture_.hear(delivery, now);
  if (const auto* policy = std::get_if<schema::Policy>(&delivery.message)) {
    const bool first = policy_ == nullptr;
    hear_policy(*policy);
    if (first && policy_) plan_due_ = now;
  }
  effects.wake_at(std::min({plan_due_, alive_due_, table_due_}));
}

void Machine::hear_policy(const schema::Policy& policy) {
  if (policy_ && policy_->hash == policy.hash) return;
  auto compiled = policy::compile_text(policy.text, policy.name);
  if (!compiled || compiled->hash != policy.hash) return;
  policy_ = std::make_shared<const policy::CompiledPolicy>(*std::move(compiled));
  rows_.clear();
  for (std::size_t c = 0; c < policy_->classes.size(); ++c) {
    rows_.emplace_back();
    for (const EngineIndex e : kit::allowed_engines(*table_, *policy_, ClassIndex(c)))
      rows_.back().push_back({e.at(), 0, true});
  }
}

void Machine::on_wake(Instant now, Effects& effects) {
  if (!term_) take_term(effects);
  if (now >= table_due_) {
    effects.say(*table_);
    table_due_ = now + table_every;
  }
  if (now >= plan_due_) {
    plan_due_ = now + options_.period;
    balance(now, effects);
  }
  if (now >= alive_due_) {
    alive_due_ = now + options_.keep_alive;
    if (sequence_ > 0)
      effects.say(schema::KeepAlive{
          {*term_, sequence_}, Digest{}, false, picture_.coverage(*table_, policy_->stale.signal_hard, now)});
  }
  effects.wake_at(std::min({plan_due_, alive_due_, table_due_}));
}

void Machine::take_term(Effects& effects) {
  std::uint64_t kept = 0;
  std::from_chars(options_.kept_term.data(), options_.kept_term.data() + options_.kept_term.size(), kept);
  term_ = Term{std::max(kept, kit::first_counter(options_.epoch)) + 1, options_.id};
  effects.persist.push_back({std::string(term_name), fmt::format("{}\n", term_->counter)});
  effects.note("leads", fmt::format("term {}", term_->counter));
}

/// Without a durable term a restart would publish under an old one and be refused: better to wait.
void Machine::on_persist_failed(const kit::Persist&, Instant now, Effects& effects) {
  effects.note("term_not_kept", "the term could not be made durable; trying again",
               schema::Severity::critical);
  term_.reset();
  sequence_ = 0;
  plan_due_ = alive_due_ = table_due_ = now + options_.period;
  effects.wake_at(plan_due_);
}

/// Requests on each engine as a share of what its batch holds; NaN where nothing fresh is known.
std::vector<double> Machine::loads(Instant now) const {
  std::vector<double> out;
  for (const schema::EngineRow& row : table_->engines) {
    const auto known = picture_.of(row.name, now);
    double load = std::numeric_limits<double>::quiet_NaN();
    if (known.signal && known.signal->running && now - known.heard_at <= policy_->stale.signal_hard)
      load = (*known.signal->running + known.signal->waiting.value_or(0)) / std::max(row.max_batch, 1.0);
    out.push_back(load);
  }
  return out;
}

void Machine::balance(Instant now, Effects& effects) {
  if (!policy_) return;
  picture_.forget_old(now);
  scores_.observe(loads(now));
  for (auto& row : rows_) {
    for (Place& place : row) {
      const auto known = picture_.of(table_->engines[place.engine].name, now);
      place.serves = !known.verdict || kit::may_serve(known.verdict->state);
    }
    nudge(row, scores_.acted_on(), options_.tuning.gain);
  }
  ++sequence_;
  for (const auto& cluster : table_->clusters) effects.say(snapshot_for(cluster.name));
}

/// The same weights for every cluster: the loop knows no network.
schema::RoutingSnapshot Machine::snapshot_for(const ClusterName& cluster) const {
  schema::RoutingSnapshot out;
  out.version = {*term_, sequence_};
  out.cluster = cluster;
  out.policy = policy_->hash;
  out.table = table_->content;
  out.period = options_.period;
  out.kind = schema::PlanKind::feedback;
  out.covers = picture_.covers();
  out.cause = "scores";
  for (std::size_t c = 0; c < rows_.size(); ++c) {
    schema::AdmitRow admit;
    admit.request_class = ClassIndex(c);
    out.admits.push_back(admit);
    std::vector<EngineIndex> allowed;
    for (const Place& place : rows_[c]) {
      allowed.emplace_back(place.engine);
      if (place.weight > 0)
        out.weights.push_back({ClassIndex(c), EngineIndex(place.engine), place.weight, 0});
    }
    out.allowed.push_back({ClassIndex(c), kit::as_bitmap(allowed, table_->engines.size())});
  }
  return out;
}

View Machine::view() const {
  View out;
  out.standing.ready = sequence_ > 0;
  out.standing.leads = sequence_ > 0;
  if (term_) out.standing.term = *term_;
  if (sequence_ > 0) out.standing.snapshot = {*term_, sequence_};
  if (policy_) out.standing.policy = policy_->hash;
  out.standing.state = policy_ == nullptr ? "no policy yet" : fmt::format("balances, snapshot {}", sequence_);
  return out;
}

}  // namespace signalbox::feedback_balancer
