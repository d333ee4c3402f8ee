#include "tests/tools/simulate/control/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "actors/global_optimizer/machine/planner.hpp"
#include "cluster-config/policy/compile.hpp"
#include "messages/codec/codec.hpp"
#include "optimizer/model/service_curve.hpp"
#include "tests/tools/simulate/control/schedule.hpp"

namespace signalbox::simulate::control {
namespace {

constexpr std::size_t most_violations = 12;
constexpr std::uint64_t fnv_prime = 1099511628211ULL;

std::uint64_t hash_of(std::span<const std::uint8_t> bytes, std::uint64_t hash = 14695981039346656037ULL) {
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * fnv_prime;
  return hash;
}

/// All of it but its age, which grows on a router's disk.
std::uint64_t content_of(schema::RoutingSnapshot snapshot) {
  snapshot.as_of_age = {};
  return hash_of(codec::encode(schema::Message(std::move(snapshot))));
}

std::string key_of(const ClusterName& cluster, ClassIndex c) {
  return fmt::format("{} {}", cluster, c.value);
}

}  // namespace

std::string text_of(const std::vector<Violation>& violations) {
  std::string out;
  for (const Violation& v : violations) out += fmt::format("  {:6.2f} s {}: {}\n", v.at_s, v.rule, v.what);
  return out;
}

Checker::Checker(const Scenario& scenario)
    : scenario_(scenario),
      policy_(*policy::compile_text(scenario.policy, "policy")),
      unwell_at_(scenario.config.engines.size(), never_yet) {
  for (const Load& load : scenario.loads) {
    policy::RequestAttributes request;
    request.tenant = load.tenant;
    request.model = load.model;
    const auto found = policy_.classify(request);
    if (found.admitted()) rates_[key_of(load.cluster, found.index)] += load.rate_per_s;
  }
}

void Checker::violate(std::string rule, std::string what) {
  if (violations_.size() < most_violations)
    violations_.push_back({to_seconds(now().time_since_epoch()), std::move(rule), std::move(what)});
}

bool Checker::deliver(const ProcessPlace& to, schema::Delivery& delivery) {
  if (!to.name.str().starts_with("optimizer")) return true;
  Heard& heard = heard_[to.name];
  if (const auto* signal = std::get_if<schema::EngineSignal>(&delivery.message)) {
    heard.signals[signal->engine] = now();
  } else if (const auto* verdict = std::get_if<schema::HealthVerdict>(&delivery.message)) {
    heard.verdicts[verdict->engine][delivery.envelope.source] = {verdict->state, verdict->isolated, now()};
  } else if (const auto* report = std::get_if<schema::OutcomeReport>(&delivery.message)) {
    auto& reports = heard.reports[delivery.envelope.source];
    reports.push_back({now(), delivery.envelope.incarnation, report->number});
    if (reports.size() > 64) reports.pop_front();
  }
  return true;
}

void Checker::started(ProcessPlace& process) {
  heard_.erase(process.name);
  routers_.erase(process.name);
}

void Checker::said(const schema::Message& message, const schema::Envelope& envelope) {
  trace_ = hash_of(codec::encode(envelope), trace_);
  trace_ = hash_of(codec::encode(message), trace_);
  if (const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&message))
    check_plan(*snapshot, envelope.source);
  if (const auto* receipt = std::get_if<schema::SnapshotReceipt>(&message);
      receipt && receipt->reason == schema::ReceiptReason::accepted)
    routers_[envelope.source].receipts[now()] = receipt->in_force;
}

Status Checker::verified(const ProcessPlace& optimizer, const std::vector<schema::RoutingSnapshot>& plan,
                         const global_optimizer::Facts&, Status judged) {
  check_term(optimizer, plan.front().version.term);
  if (judged)
    for (const auto& snapshot : plan)
      verified_.insert({{snapshot.cluster, snapshot.version}, content_of(snapshot)});
  return judged;
}

/// Who leads has its term on disk. One whose disk was full may lead all the same, and tries again each ten seconds.
void Checker::check_term(const ProcessPlace& optimizer, const Term& term) {
  constexpr Duration tries_again = 12s;
  const bool was_full =
      optimizer.disk_full || std::ranges::any_of(scenario_.happenings, [&](const Happening& h) {
        return h.kind == HappeningKind::disk_full && h.process == optimizer.name &&
               instant_at(h.at) <= now() && now() <= instant_at(h.at) + tries_again;
      });
  const auto kept = optimizer.kept.find("term");
  if (!was_full && (kept == optimizer.kept.end() || kept->second != fmt::format("{}\n", term.counter)))
    violate("durable_term",
            fmt::format("{} leads in term {}, which it has not kept", optimizer.name, term.counter));
}

void Checker::remember_content(const schema::RoutingSnapshot& snapshot, bool adopted) {
  const Version version{snapshot.cluster, snapshot.version};
  const std::uint64_t content = content_of(snapshot);
  const auto [known, fresh] = contents_.emplace(version, content);
  if (!fresh && known->second != content)
    violate("one_content", fmt::format("two snapshots {} of {}", snapshot.version, snapshot.cluster));
  if (adopted && !verified_.contains({version, content}))
    violate("only_verified",
            fmt::format("snapshot {} of {} was never verified", snapshot.version, snapshot.cluster));
}

void Checker::check_plan(const schema::RoutingSnapshot& snapshot, const ProcessName& author) {
  remember_content(snapshot, false);
  SnapshotVersion& last = said_[{author, snapshot.cluster}];
  if (snapshot.version <= last)
    violate("versions_rise", fmt::format("{} says {} after {}", author, snapshot.version, last));
  last = std::max(last, snapshot.version);
  if (snapshot.version.term.optimizer != author)
    violate("own_term", fmt::format("{} speaks in the term of {}", author, snapshot.version.term.optimizer));
  const Heard& heard = heard_[author];
  const Instant as_of = now() - snapshot.as_of_age;
  check_covers(snapshot, heard, as_of);
  check_gone(snapshot, heard, as_of);
  check_coverage(snapshot, heard, as_of);
  check_demand(snapshot);
}

/// A plan says of each router which report it knew: exactly the last one that its optimizer had heard. Less, and the
/// router counts a penalty twice; more, and it forgets one that nobody has counted.
void Checker::check_covers(const schema::RoutingSnapshot& snapshot, const Heard& heard, Instant as_of) {
  for (const auto& [router, reports] : heard.reports) {
    std::uint64_t surely = 0, perhaps = 0;
    Instant last = never_yet;
    for (const auto& report : reports) {
      if (report.incarnation != reports.back().incarnation || report.at > as_of) continue;
      perhaps = std::max(perhaps, report.number);
      if (report.at < as_of) surely = std::max(surely, report.number), last = report.at;
    }
    if (surely == 0 || as_of - last > 2s) continue;
    const auto cover = std::find_if(snapshot.covers.begin(), snapshot.covers.end(),
                                    [&, r = router](const auto& row) { return row.router == r; });
    const std::uint64_t said = cover == snapshot.covers.end() ? 0 : cover->report;
    const bool same_life = cover == snapshot.covers.end() || cover->incarnation == reports.back().incarnation;
    if (said != 0 && !same_life) continue;  // the router was just started anew
    if (said < surely || said > perhaps)
      violate("covers", fmt::format("{} covers report {} of {}, it had heard {}", snapshot.version, said,
                                    router, surely));
  }
}

void Checker::check_gone(const schema::RoutingSnapshot& snapshot, const Heard& heard, Instant as_of) {
  for (const schema::WeightRow& row : snapshot.weights) {
    const auto known = heard.verdicts.find(scenario_.config.engines[row.engine.at()].name);
    if (known == heard.verdicts.end() || row.weight <= 0) continue;
    std::size_t speak = 0, gone = 0;
    for (const auto& [monitor, verdict] : known->second) {
      if (as_of - verdict.heard_at > 16s) continue;
      ++speak;
      gone += verdict.heard_at < as_of && verdict.state == HealthState::gone && !verdict.isolated &&
              as_of - verdict.heard_at < 10s;
    }
    if (speak > 0 && gone == speak)
      violate("nothing_to_the_gone",
              fmt::format("{} gives {} a weight of {:.3f}", snapshot.version, known->first, row.weight));
  }
}

void Checker::check_coverage(const schema::RoutingSnapshot& snapshot, const Heard& heard, Instant as_of) {
  if (snapshot.kind != schema::PlanKind::optimal) return;
  const Duration fresh = policy_.stale.signal_hard + 500ms;
  const auto known = std::count_if(heard.signals.begin(), heard.signals.end(),
                                   [&](const auto& signal) { return as_of - signal.second <= fresh; });
  const double share = static_cast<double>(known) / static_cast<double>(scenario_.config.engines.size());
  if (share < policy_.lead.coverage - 1e-9)
    violate("coverage", fmt::format("{} was planned on signals of {:.0f} % of the engines", snapshot.version,
                                    100 * share));
}

/// Nobody asked for half as much again as was asked for; but who waited for a router that stood still comes with all others at
/// once, and for a period a plan may take that for a step.
void Checker::check_demand(const schema::RoutingSnapshot& snapshot) {
  for (const schema::AdmitRow& row : snapshot.admits) {
    const auto rate = rates_.find(key_of(snapshot.cluster, row.request_class));
    const double truth = rate == rates_.end() ? 0 : rate->second;
    const auto key = key_of(snapshot.cluster, row.request_class);
    Instant& since = over_since_.try_emplace(key, end_of_time).first->second;
    since = row.planned_rps > 1.6 * truth + 5 ? std::min(since, now()) : end_of_time;
    if (since != end_of_time && now() - since > 1500ms)
      violate("demand",
              fmt::format("{} plans for {:.1f}/s of class {} in {}, {:.1f}/s come", snapshot.version,
                          row.planned_rps, row.request_class.value, snapshot.cluster, truth));
  }
}

void Checker::adopt(const ProcessPlace& router, std::shared_ptr<const routing::View>& view) {
  check_ejections(router, *view);
  if (!view->snapshot) return;
  RouterNow& known = routers_[router.name];
  if (view->snapshot == known.snapshot) return;
  if (view->snapshot->version < known.version)
    violate("versions_rise",
            fmt::format("{} goes back from {} to {}", router.name, known.version, view->snapshot->version));
  known.version = std::max(known.version, view->snapshot->version);
  known.snapshot = view->snapshot;
  remember_content(*view->snapshot, true);
  check_load(*view->table);
}

/// What all routers' plans together put on each engine, a cluster's routers sharing its requests.
void Checker::check_load(const schema::FleetTable& table) {
  std::map<ClusterName, std::size_t> routers;
  for (const auto& [name, router] : routers_)
    if (router.snapshot) ++routers[router.snapshot->cluster];
  std::vector<double> load(table.engines.size());
  for (const auto& [name, router] : routers_) {
    if (!router.snapshot) continue;
    const double part = 1.0 / static_cast<double>(routers[router.snapshot->cluster]);
    for (const schema::WeightRow& row : router.snapshot->weights) {
      const auto admit = std::find_if(router.snapshot->admits.begin(), router.snapshot->admits.end(),
                                      [&](const auto& a) { return a.request_class == row.request_class; });
      if (admit == router.snapshot->admits.end()) continue;
      const schema::EngineRow& e = table.engines[row.engine.at()];
      double slowness = 1;
      for (const schema::PriceRow& price : router.snapshot->prices)
        if (price.engine == row.engine) slowness = price.slowness;
      const double work =
          slowness *
          (admit->output_tokens * (e.per_sequence_s + e.per_context_token_s *
                                                          (admit->prompt_tokens + admit->output_tokens / 2)) +
           e.per_prefill_token_s * admit->prompt_tokens);
      load[row.engine.at()] += part * row.weight * admit->planned_rps * admit->admit * work;
    }
  }
  for (std::size_t e = 0; e < load.size(); ++e)
    if (load[e] > 1)
      violate("load",
              fmt::format("{} is planned to {:.0f} % of its capacity", table.engines[e].name, 100 * load[e]));
}

/// Of the engines that have been well for a while, no more are kept from requests than the policy lets be taken out, once the
/// engine's own signals have had the time to speak against it.
void Checker::check_ejections(const ProcessPlace& router, const routing::View& view) {
  std::size_t out = 0;
  std::string names;
  for (std::size_t e = 0; e < view.engines.size(); ++e) {
    const HealthState state = view.engines[e].state;
    const bool taken_out = state == HealthState::gone || state == HealthState::suspect;
    Instant& since = out_since_.try_emplace({router.name, e}, end_of_time).first->second;
    since = taken_out ? std::min(since, now()) : end_of_time;
    if (!taken_out || now() - since < 500ms || (unwell_at_[e] != never_yet && now() - unwell_at_[e] < 15s))
      continue;
    ++out;
    names += fmt::format(" {}", view.table->engines[e].name);
  }
  // One of each model's three engines.
  if (out > 2) violate("ejections", fmt::format("{} sends nothing to{}", router.name, names));
}

void Checker::ended(const Outcome& request) {
  Requests& requests = requests_[request.router];
  ++requests.offered;
  if (request.attempts > 1) requests.retries += request.attempts - 1;
  if (request.attempts > policy_.retry.attempts)
    violate("attempts", fmt::format("a request was sent {} times", request.attempts));
  if (request.arrived < instant_at(settled_at)) return;
  (request.served() ? late_served_ : late_failures_) += 1;
}

void Checker::look(const World& world) {
  for (std::size_t e = 0; e < unwell_at_.size(); ++e) {
    const EngineHost& engine = world.engine(e);
    if (!engine.up() || engine.faults().frozen || engine.faults().slowness != 1) unwell_at_[e] = now();
  }
  for (const auto& process : world.processes()) {
    const auto router = routers_.find(process.place.name);
    if (router == routers_.end() || !process.up) continue;
    for (const auto& [at, version] : router->second.receipts)
      if (process.standing.snapshot < version)
        violate("receipts", fmt::format("{} said that {} is in force, it has {}", process.place.name, version,
                                        process.standing.snapshot));
    router->second.receipts.clear();
  }
}

const std::vector<Violation>& Checker::finish() {
  for (const auto& [router, requests] : requests_) {
    const double allowed =
        policy_.retry.budget_ratio * static_cast<double>(requests.offered) + policy_.retry.budget_burst;
    if (static_cast<double>(requests.retries) > allowed + 1e-9)
      violate("budget",
              fmt::format("router {} retried {} of {} requests", router, requests.retries, requests.offered));
  }
  check_liveness();
  return violations_;
}

}  // namespace signalbox::simulate::control
