#include "actors/cluster_router/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cluster-config/policy/compile.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::cluster_router {

namespace {

constexpr Duration view_every = 100ms;  ///< new readings reach the loops within this time
constexpr Duration keep_every = 5s;     ///< snapshots are kept this often at most
constexpr Duration tidy_every = 1s;
constexpr Duration router_lifetime = 5s;
constexpr Duration interest_lifetime = 10s;
constexpr auto old_alert = kit::AlertName::snapshot_old, refused_alert = kit::AlertName::snapshot_refused,
               untrusted_alert = kit::AlertName::engine_untrusted,
               budget_alert = kit::AlertName::retry_budget_empty, shed_alert = kit::AlertName::critical_shed;
/// An alert on what happens now and then stands for so long after the last time.
constexpr Duration calm_after = 10s;

std::string bytes_of(const schema::Message& message) {
  const schema::Bytes bytes = codec::encode(message);
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::optional<T> message_of(const std::string& bytes) {
  if (bytes.empty()) return std::nullopt;
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  auto message = codec::decode(T::info.kind, copy);
  if (!message) return std::nullopt;
  return std::get<T>(*std::move(message));
}

}  // namespace

const kit::RoleInfo& Machine::role_info() {
  static constexpr std::string_view hears[] = {
      "policy",        "fleet_table", "routing_snapshot", "health_verdict", "engine_signal", "engine_profile",
      "sent_prefixes", "beat",        "interest",         "cache_digest"};
  static constexpr std::string_view says[] = {"snapshot_receipt", "demand_report", "outcome_report",
                                              "sent_prefixes",    "alert",         "decision_record",
                                              "decision_inputs"};
  static constexpr kit::RoleInfo info{Role::cluster_router, "serves clients of one cluster", hears, says};
  return info;
}

Machine::Machine(Options options)
    : options_(std::move(options)),
      plans_(options_.cluster, options_.epoch, std::make_shared<const schema::FleetTable>(options_.table)),
      reports_(options_.cluster),
      gateway_(options_.gateway) {}

/// From what the life before kept: a router that is restarted serves at once.
void Machine::start(Instant now, Effects& effects) {
  started_ = true;
  report_due_ = now + options_.report;
  share_due_ = now + options_.share;
  reported_at_ = tidy_due_ = now;
  const Kept& kept = options_.kept;
  if (const auto policy = policy::compile_text(kept.policy, "kept policy"); policy && !kept.policy.empty()) {
    plans_.take_policy(std::make_shared<const policy::CompiledPolicy>(*policy), now);
    policy_text_ = kept_policy_ = kept.policy;
  }
  if (auto table = message_of<schema::FleetTable>(kept.table); table && kit::check_table(*table)) {
    kept_table_ = table->content;
    plans_.take_table(std::make_shared<const schema::FleetTable>(*std::move(table)), now);
  }
  if (auto snapshot = message_of<schema::RoutingSnapshot>(kept.snapshot); snapshot && plans_.policy()) {
    kept_snapshot_ = snapshot->version;
    const Judgement judged = plans_.take_snapshot(std::make_shared<const schema::RoutingSnapshot>(*snapshot),
                                                  now - snapshot->as_of_age, now);
    effects.note("started_from_disk",
                 fmt::format("snapshot {}: {}", snapshot->version, name_of(judged.reason)));
  }
  want_view(now);
}

void Machine::on(const schema::Delivery& delivery, Instant now, Effects& effects) {
  const ProcessName& author = delivery.envelope.source;
  if (const auto* policy = std::get_if<schema::Policy>(&delivery.message)) {
    hear(*policy, now, effects);
  } else if (const auto* table = std::get_if<schema::FleetTable>(&delivery.message)) {
    hear(*table, now, effects);
  } else if (const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&delivery.message)) {
    hear(*snapshot, delivery.age, now, effects);
  } else if (const auto* verdict = std::get_if<schema::HealthVerdict>(&delivery.message)) {
    if (verdicts_.hear(*verdict, author, delivery.age, now)) want_view(now);
  } else if (const auto* signal = std::get_if<schema::EngineSignal>(&delivery.message)) {
    hear(*signal, delivery.age, now);
  } else if (const auto* profile = std::get_if<schema::EngineProfile>(&delivery.message)) {
    engines_[profile->engine].profile = *profile;
    want_view(now + view_every);
  } else if (const auto* cache = std::get_if<schema::CacheDigest>(&delivery.message)) {
    engines_[cache->engine].cache = *cache;
    want_view(now + view_every);
  } else if (const auto* sent = std::get_if<schema::SentPrefixes>(&delivery.message)) {
    if (author != options_.id) sent_.hear(*sent, plans_.table()->content, now), want_view(now + view_every);
  } else if (const auto* interest = std::get_if<schema::Interest>(&delivery.message)) {
    hear(*interest, author, now);
  } else if (const auto* beat = std::get_if<schema::Beat>(&delivery.message)) {
    if (beat->role == Role::cluster_router && beat->id != options_.id) routers_[beat->id] = now;
  }
  if (now >= view_due_) rebuild(now, effects);
  effects.wake_at(next_due(now));
}

void Machine::hear(const schema::Policy& policy, Instant now, Effects& effects) {
  if (policy.text == policy_text_) return;
  auto compiled = policy::compile_text(policy.text, "policy");
  if (!compiled || compiled->hash != policy.hash) {
    effects.note("policy_not_taken",
                 compiled ? fmt::format("{} here, {} said", compiled->hash.brief(), policy.hash.brief())
                          : compiled.error().text(),
                 schema::Severity::critical);
    return;
  }
  policy_text_ = policy.text;
  if (plans_.take_policy(std::make_shared<const policy::CompiledPolicy>(*std::move(compiled)), now))
    effects.note("policy_heard",
                 fmt::format("{} version {}, hash {}", policy.name, policy.version, policy.hash.brief()));
  settle(now, effects);
  want_view(now);
  keep_due_ = std::min(keep_due_, now);
}

void Machine::hear(const schema::FleetTable& table, Instant now, Effects& effects) {
  if (const auto sound = kit::check_table(table); !sound) {
    effects.note("table_not_taken", sound.error().text(), schema::Severity::critical);
    return;
  }
  if (!plans_.take_table(std::make_shared<const schema::FleetTable>(table), now)) return;
  effects.note("table_heard",
               fmt::format("{} engines, hash {}", table.engines.size(), table.content.brief()));
  settle(now, effects);
}

void Machine::hear(const schema::RoutingSnapshot& snapshot, Duration age, Instant now, Effects& effects) {
  if (snapshot.cluster != options_.cluster) return;
  answer(snapshot,
         plans_.take_snapshot(std::make_shared<const schema::RoutingSnapshot>(snapshot),
                              now - age - snapshot.as_of_age, now),
         now, effects);
}

void Machine::answer(const schema::RoutingSnapshot& snapshot, const Judgement& judgement, Instant now,
                     Effects& effects) {
  if (judgement.repeated) return;
  say_receipt(judgement.reason, snapshot.version, judgement.detail, effects);
  if (judgement.reason == schema::ReceiptReason::accepted) {
    alerts_.clear(refused_alert, effects);
    if (keep_due_ == end_of_time) keep_due_ = kept_snapshot_ == SnapshotVersion{} ? now : now + keep_every;
    want_view(now);
    return;
  }
  const std::string why =
      fmt::format("{}: {}: {}", snapshot.version, name_of(judgement.reason), judgement.detail);
  if (judgement.reason == schema::ReceiptReason::older) return effects.note("snapshot_older", why);
  effects.note("snapshot_refused", why, schema::Severity::warning);
  if (judgement.reason == schema::ReceiptReason::illegal ||
      judgement.reason == schema::ReceiptReason::implausible_term)
    alerts_.raise(refused_alert, why, options_.id.str(), now, effects);
}

void Machine::say_receipt(schema::ReceiptReason reason, const SnapshotVersion& version, std::string detail,
                          Effects& effects) {
  effects.say(
      schema::SnapshotReceipt{options_.cluster, version, reason, detail.substr(0, 512), plans_.version()});
}

void Machine::settle(Instant now, Effects& effects) {
  const SnapshotPtr before = plans_.snapshot();
  const auto judged = plans_.settle(now);
  if (judged && plans_.snapshot() && plans_.snapshot() != before)
    answer(*plans_.snapshot(), *judged, now, effects);
  if (plans_.snapshot() != before) want_view(now);
}

void Machine::hear(const schema::EngineSignal& signal, Duration age, Instant now) {
  Heard& heard = engines_[signal.engine];
  heard.signal = signal;
  heard.signal_at = now - age - signal.reading_age;
  heard.said_at = now - age;
  want_view(now + view_every);
}

void Machine::hear(const schema::Interest& interest, const ProcessName& forwarder, Instant now) {
  const auto listens = [&](const schema::MessageInfo& info) {
    return std::ranges::find(interest.messages, ProcessName(info.name)) != interest.messages.end();
  };
  const routing::Publish before = wanted();
  interests_[forwarder] = {{listens(schema::DecisionRecord::info), listens(schema::DecisionInputs::info)},
                           now};
  if (wanted() != before) want_view(now);
}

routing::Publish Machine::wanted() const {
  routing::Publish out;
  for (const auto& [forwarder, said] : interests_) {
    out.decisions = out.decisions || said.first.decisions;
    out.inputs = out.inputs || said.first.inputs;
  }
  return out;
}

void Machine::on(const Input& input, Instant now, Effects& effects) {
  if (const auto* state = std::get_if<GatewayState>(&input)) {
    gateway_ = *state;
    effects.note(state->listening ? "gateway_listens" : "gateway_down", state->detail,
                 state->listening ? schema::Severity::info : schema::Severity::critical);
    return;
  }
  if (const auto* decisions = std::get_if<DecisionsKept>(&input))
    return alerts_.set(!decisions->kept, kit::AlertName::decisions_not_kept,
                       fmt::format("decisions are not filed: {}", decisions->detail.substr(0, 512)),
                       options_.id.str(), now, effects);
  const routing::Batch& batch = std::get<BatchIn>(input).batch;
  watch_identities(batch, now, effects);
  if (batch.policy.is_zero()) return;  // of a loop that had no view yet
  watch_traffic(batch, now, effects);
  if (reports_.is_foreign(batch)) report(now, effects);
  reports_.add(batch);
  sent_.add_own(batch.sent, batch.table, batch.block_bytes);
  if (options_.loops > 1 && !batch.sent.empty()) {
    sent_.tell_loops(batch.loop, batch.sent, batch.table, plans_.table()->content, now);
    want_view(now + view_every);
    effects.wake_at(next_due(now));
  }
  for (const auto& record : batch.records) effects.say(record);
  for (const auto& read : batch.inputs) effects.say(read);
}

void Machine::on_wake(Instant now, Effects& effects) {
  if (!started_) start(now, effects);
  settle(now, effects);
  if (now >= report_due_) {
    report(now, effects);
    report_due_ = now + options_.report;
  }
  if (now >= share_due_) {
    if (auto sent = sent_.take_own(options_.cluster)) effects.say(*std::move(sent));
    share_due_ = now + options_.share;
  }
  if (now >= tidy_due_) {
    std::erase_if(routers_, [&](const auto& r) { return now - r.second > router_lifetime; });
    if (std::erase_if(interests_, [&](const auto& i) { return now - i.second.second > interest_lifetime; }) >
        0)
      want_view(now);
    verdicts_.forget_old(now);
    sent_.forget_old(now);
    watch_age(now, effects);
    calm_down(now, effects);
    alerts_.repeat_due(now, effects);
    tidy_due_ = now + tidy_every;
  }
  if (now >= view_due_) rebuild(now, effects);
  if (now >= keep_due_) keep(now, effects);
  effects.wake_at(next_due(now));
}

void Machine::report(Instant now, Effects& effects) {
  if (!reports_.empty()) {
    auto [demand, outcome] = reports_.take(now - reported_at_);
    effects.say(std::move(demand));
    effects.say(std::move(outcome));
  }
  reported_at_ = now;
}

void Machine::keep(Instant now, Effects& effects) {
  keep_due_ = end_of_time;
  if (plans_.policy() && policy_text_ != kept_policy_)
    effects.persist.push_back({std::string(policy_name), kept_policy_ = policy_text_});
  if (plans_.table()->content != kept_table_) {
    effects.persist.push_back({std::string(table_name), bytes_of(*plans_.table())});
    kept_table_ = plans_.table()->content;
  }
  if (plans_.snapshot() && plans_.version() != kept_snapshot_) {
    schema::RoutingSnapshot kept = *plans_.snapshot();
    kept.as_of_age = std::max(now - plans_.as_of(), Duration::zero());
    effects.persist.push_back({std::string(snapshot_name), bytes_of(kept)});
    kept_snapshot_ = kept.version;
  }
}

/// Nothing is lost but the quick start of the next life: say the rest that was to be said later, and try again then.
void Machine::on_persist_failed(const kit::Persist& failed, Instant now, Effects& effects) {
  alerts_.raise(
      kit::AlertName::state_not_kept,
      fmt::format("{} could not be written; a restarted router would start without it", failed.name),
      options_.id.str(), now, effects);
  kept_policy_.clear();
  kept_table_ = {};
  kept_snapshot_ = {};
  keep_due_ = now + keep_every;
  want_view(now);
  rebuild(now, effects);
  effects.wake_at(next_due(now));
}

routing::ViewInputs Machine::inputs(Instant now) {
  routing::ViewInputs out;
  out.cluster = options_.cluster;
  out.policy = plans_.policy();
  out.table = plans_.table();
  out.snapshot = plans_.snapshot();
  out.as_of = plans_.as_of();
  out.routers = static_cast<std::uint32_t>(routers_.size()) + options_.loops;
  std::vector<kit::Accusation> accusations;
  for (const auto& row : out.table->engines) {
    kit::Accusation& accusation = accusations.emplace_back();
    accusation.since = verdicts_.accused_since(row.name, now);
    routing::EngineInput engine;
    engine.verdict = verdicts_.of(row.name, now);
    if (const auto heard = engines_.find(row.name); heard != engines_.end()) {
      if (heard->second.signal) engine.signal = &*heard->second.signal;
      engine.signal_at = heard->second.signal_at;
      accusation.signal = engine.signal;
      accusation.signal_at = heard->second.said_at;
      if (heard->second.profile) engine.profile = &*heard->second.profile;
      if (heard->second.cache) engine.cache = &*heard->second.cache;
    }
    out.engines.push_back(engine);
  }
  // A monitor that errs cannot take out more of the fleet than the policy allows.
  kit::overrule(*out.table, *out.policy, accusations, now, out.engines, instead_);
  if (out.snapshot)
    for (const auto& cover : out.snapshot->covers)
      if (cover.router == options_.id && cover.incarnation == options_.incarnation)
        out.covered_batches = reports_.batches_of(cover.report);
  out.publish = wanted();
  out.sent.assign(sent_.others().begin(), sent_.others().end());
  return out;
}

void Machine::rebuild(Instant now, Effects& effects) {
  view_due_ = end_of_time;
  if (!plans_.policy()) return;
  auto built = routing::build_view(inputs(now), view_.get());
  if (!built) {
    effects.note("view_not_built", fmt::format("{}: {}", name_of(built.error().reason), built.error().detail),
                 schema::Severity::critical);
    return;
  }
  view_ = *std::move(built);
  effects.command({view_});
}

void Machine::watch_age(Instant now, Effects& effects) {
  if (!plans_.policy()) return;
  const Duration warn = plans_.policy()->stale.snapshot_warn;
  const bool old = plans_.snapshot() && now - plans_.as_of() > warn;
  if (!old) return alerts_.clear(old_alert, effects);
  alerts_.raise(old_alert, fmt::format("the snapshot in force is older than {} s", to_seconds(warn)),
                options_.id.str(), now, effects);
}

void Machine::watch_traffic(const routing::Batch& batch, Instant now, Effects& effects) {
  if (batch.retries_denied > 0) {
    budget_empty_at_ = now;
    alerts_.raise(budget_alert,
                  "requests fail that might have been answered elsewhere: the budget for retries is used up",
                  options_.id.str(), now, effects);
  }
  if (!plans_.policy() || plans_.policy()->hash != batch.policy) return;
  const auto& classes = plans_.policy()->classes;
  for (const schema::DemandRow& row : batch.demand) {
    if (row.shed == 0 || row.request_class.at() >= classes.size()) continue;
    const auto& shed = classes[row.request_class.at()];
    if (shed.criticality != Criticality::critical) continue;
    critical_shed_at_ = now;
    alerts_.raise(shed_alert, fmt::format("requests of the critical class {} are refused", shed.name),
                  options_.id.str(), now, effects);
  }
}

void Machine::calm_down(Instant now, Effects& effects) {
  if (budget_empty_at_ < now - calm_after) alerts_.clear(budget_alert, effects);
  if (critical_shed_at_ < now - calm_after) alerts_.clear(shed_alert, effects);
}

/// Raised while an engine shows another certificate than the fleet table names: it is served again, or it has left the table.
void Machine::watch_identities(const routing::Batch& batch, Instant now, Effects& effects) {
  for (const routing::EngineProblem& problem : batch.problems) {
    if (!problem.untrusted) {
      effects.note("engine_tls_failed", fmt::format("{}: {}", problem.engine, problem.text),
                   schema::Severity::warning);
      continue;
    }
    std::string& known = untrusted_[problem.engine];
    if (known != problem.text)
      effects.note("engine_untrusted", fmt::format("{}: {}", problem.engine, problem.text),
                   schema::Severity::critical);
    known = problem.text;
  }
  if (untrusted_.empty()) return;
  const schema::FleetTable& table = *plans_.table();
  if (batch.table == table.content)
    for (const schema::OutcomeRow& row : batch.outcomes)
      if (row.succeeded > 0 && row.engine.at() < table.engines.size())
        untrusted_.erase(table.engines[row.engine.at()].name);
  std::erase_if(untrusted_, [&](const auto& known) { return !kit::find_engine(table, known.first); });
  if (untrusted_.empty()) return alerts_.clear(untrusted_alert, effects);
  const auto& [engine, text] = *untrusted_.begin();
  alerts_.raise(untrusted_alert,
                fmt::format("{} of {} engines {} not trusted and sent nothing; {}: {}", untrusted_.size(),
                            table.engines.size(), untrusted_.size() == 1 ? "is" : "are", engine, text),
                engine.str(), now, effects);
}

Instant Machine::next_due(Instant now) const {
  return std::max(now, std::min({view_due_, keep_due_, report_due_, share_due_, tidy_due_, plans_.due()}));
}

View Machine::view() const {
  View out;
  out.view = view_;
  kit::Standing& s = out.standing;
  s.ready = gateway_.listening && view_ != nullptr;
  s.snapshot = plans_.version();
  s.term = plans_.version().term;
  if (plans_.policy()) s.policy = plans_.policy()->hash;
  s.state = !gateway_.listening  ? "not listening: " + gateway_.detail
            : !plans_.policy()   ? "no policy yet"
            : !plans_.snapshot() ? "serves without a plan"
                                 : fmt::format("serves by snapshot {}", plans_.version());
  return out;
}

}  // namespace signalbox::cluster_router
