#include "actors/global_optimizer/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "actors/global_optimizer/machine/shed_order.hpp"
#include "cluster-config/policy/compile.hpp"
#include "optimizer/model/keep.hpp"

namespace signalbox::global_optimizer {

namespace {

constexpr Duration table_every = 10s, tidy_every = 1s, keep_again = 10s;
constexpr Duration react =
    50ms;                        ///< from a changed verdict to a new plan: one engine's end often brings more
constexpr int listen_share = 5;  ///< a leader that hears too little looks again after this share of a period
constexpr std::uint64_t most_failed_solves = 3;
constexpr auto plan_alert = kit::AlertName::plan_held, coverage_alert = kit::AlertName::coverage_low,
               refused_alert = kit::AlertName::plan_refused, off_alert = kit::AlertName::plan_off,
               limit_alert = kit::AlertName::limit_not_held;

std::uint64_t number_in(const std::string& text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

Digest digest_over(const std::vector<schema::RoutingSnapshot>& snapshots) {
  std::string text;
  for (const auto& s : snapshots) {
    text += fmt::format("{} {}\n", s.cluster, s.version);
    for (const auto& w : s.weights)
      text += fmt::format("{} {} {}\n", w.request_class.value, w.engine.value, w.weight);
  }
  return digest_of(text);
}

}  // namespace

const kit::RoleInfo& Machine::role_info() {
  static constexpr std::string_view hears[] = {
      "engine_signal",   "engine_profile", "engine_farewell",  "health_verdict",
      "demand_report",   "outcome_report", "policy",           "beat",
      "calibration",     "order",          "snapshot_receipt", "keep_alive",
      "routing_snapshot"};
  static constexpr std::string_view says[] = {"fleet_table", "routing_snapshot", "keep_alive", "calibration",
                                              "alert",       "order_receipt"};
  static constexpr kit::RoleInfo info{Role::global_optimizer,
                                      "solves for the routing weights and broadcasts them", hears, says};
  return info;
}

Machine::Machine(Options options)
    : options_(std::move(options)), table_(std::make_shared<const schema::FleetTable>(options_.table)) {}

void Machine::on(const schema::Delivery& delivery, Instant now, Effects& effects) {
  coordinate(now, effects);
  if (election_ && election_->hear(delivery, now))
    stepped_down(
        fmt::format("term {} of {} is higher", election_->term().counter, election_->term().optimizer), now,
        effects);
  if (tenure_ && election_->leads() && delivery.envelope.source != options_.id)
    echo_.hear(delivery, {election_->term(), sequence_}, now);
  if (picture_.hear(delivery, now) && election_ && election_->leads())
    plan_due_ = std::min(plan_due_, now + react);
  if (const auto* report = std::get_if<schema::DemandReport>(&delivery.message)) {
    if (policy_ && demand_.hear(*report, delivery.envelope.incarnation, policy_->hash, now) && election_ &&
        election_->leads())
      plan_due_ = std::min(plan_due_, now + react);
  } else if (const auto* outcomes = std::get_if<schema::OutcomeReport>(&delivery.message)) {
    calibration_.hear(*outcomes);
  } else if (const auto* policy = std::get_if<schema::Policy>(&delivery.message)) {
    hear_policy(*policy, now, effects);
  } else if (const auto* order = std::get_if<schema::Order>(&delivery.message)) {
    hear_order(*order, now, effects);
  } else if (const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&delivery.message)) {
    hear_snapshot(*snapshot, now);
  } else if (const auto* calibration = std::get_if<schema::Calibration>(&delivery.message)) {
    if (election_ && !election_->leads()) last_calibration_ = *calibration;
  }
  effects.wake_at(next_due(now));
}

void Machine::hear_policy(const schema::Policy& policy, Instant now, Effects& effects) {
  if (policy_ && policy_->hash == policy.hash) return;
  auto compiled = policy::compile_text(policy.text, "policy");
  if (!compiled || compiled->hash != policy.hash)
    return effects.note("policy_not_taken",
                        compiled ? "its hash is another one here" : compiled.error().text(),
                        schema::Severity::critical);
  policy_ = std::make_shared<const policy::CompiledPolicy>(*std::move(compiled));
  demand_.clear();
  demand_level_ = {};
  calibration_.clear();
  churn_.clear();
  placer_.clear();
  solved_.reset();
  in_flight_.reset();
  differing_ = 0;
  effects.note("policy_taken",
               fmt::format("{} version {}, hash {}", policy.name, policy.version, policy.hash.brief()));
  if (election_ && election_->leads()) plan_due_ = now;
}

/// The weights in force, whoever published them: what churn is measured from, and what a hold plan holds.
void Machine::hear_snapshot(const schema::RoutingSnapshot& snapshot, Instant now) {
  if (election_ && election_->leads()) return;
  for (auto& known : in_force_)
    if (known.cluster == snapshot.cluster) {
      if (known.version < snapshot.version) {
        if (policy_) churn_.note(known, snapshot, policy_->limits.churn, now);
        known = snapshot;
      }
      return;
    }
  in_force_.push_back(snapshot);
}

void Machine::hear_order(const schema::Order& order, Instant now, Effects& effects) {
  if (order.target != options_.id && order.target.str() != "all") return;
  const auto receipt = [&](bool done, std::string detail) {
    effects.say(schema::OrderReceipt{Role::global_optimizer, options_.id, order.id, done, std::move(detail)});
  };
  if (order.kind == schema::OrderKind::set_network) return set_network(order, now, effects);
  if (order.kind != schema::OrderKind::resign) return;
  if (!election_ || !election_->leads()) return receipt(false, "it does not lead");
  resign("ordered", now, effects);
  receipt(true, "leadership given up");
}

/// A new round trip makes another table: routers and plans go on agreeing on what the network costs.
void Machine::set_network(const schema::Order& order, Instant now, Effects& effects) {
  schema::FleetTable changed = *table_;
  const auto from = kit::find_cluster(changed, order.from), to = kit::find_cluster(changed, order.to);
  const bool known = from && to && *from != *to;
  if (known) {
    const auto link = std::find_if(changed.links.begin(), changed.links.end(),
                                   [&](const auto& l) { return l.from == *from && l.to == *to; });
    if (link != changed.links.end())
      link->rtt_s = order.value;
    else
      changed.links.push_back({*from, *to, order.value});
    changed.content = kit::content_of(changed);
    table_ = std::make_shared<const schema::FleetTable>(std::move(changed));
    placer_.clear();
    in_flight_.reset();
    solved_.reset();
    if (election_ && election_->leads()) table_due_ = plan_due_ = now;
  }
  effects.say(schema::OrderReceipt{Role::global_optimizer, options_.id, order.id, known,
                                   known ? fmt::format("{} to {} is {} s", order.from, order.to, order.value)
                                         : "no such pair of clusters"});
}

void Machine::on_wake(Instant now, Effects& effects) {
  if (!election_)
    election_.emplace(ElectionOptions{options_.id, options_.epoch, number_in(options_.kept_term),
                                      options_.leader_timeout, options_.period},
                      now);
  if (options_.etcd && !tenure_) {
    tenure_.emplace(*options_.etcd);
    tenure_->resign(now, options_.leader_timeout);  // it listens first, and learns the highest term
  }
  coordinate(now, effects);
  if (now >= keep_due_) {  // alone: if it fails, nothing else is dropped with it
    keep_due_ = end_of_time;
    keep_term(Keeping::again, effects);
    return effects.wake_at(next_due(now));
  }
  if (!tenure_ && election_->should_stand(now)) {
    nobody_else_led_ =
        could_not_lead_at_ != end_of_time && !election_->heard_leader_since(could_not_lead_at_);
    lead(election_->stand(now), now, effects);
  }
  if (now >= table_due_) {
    effects.say(*table_);
    table_due_ = now + table_every;
  }
  if (now >= solve_due()) give_up_solving(now, effects);
  if (now >= plan_due_) plan(now, effects);
  if (now >= rehearse_due_) rehearse(now, effects);
  if (now >= alive_due_) say_keep_alive(now, effects);
  if (now >= tidy_due_) {
    picture_.forget_old(now);
    calibrate(now, effects);
    watch_etcd(now, effects);
    alerts_.repeat_due(now, effects);
    tidy_due_ = now + tidy_every;
  }
  effects.wake_at(next_due(now));
}

/// Its term is durable before anything is said in it: Effects::persist comes first. In etcd it is that already.
void Machine::lead(Term term, Instant now, Effects& effects) {
  own_counter_ = term.counter;
  keep_due_ = end_of_time;
  if (!tenure_) keep_term(Keeping::to_lead, effects);
  echo_.begin(now);
  effects.note("leads", fmt::format("term {}", term.counter));
  sequence_ = 0;
  failed_solves_ = 0;
  planned_.reset();
  in_flight_.reset();
  rehearse_due_ = end_of_time;
  differing_ = 0;
  alerts_.clear(kit::AlertName::plans_diverged, effects);
  table_due_ = plan_due_ = alive_due_ = now;
}

/// What ends with leadership, however it ends. `rest`: how long it does not stand again.
void Machine::stand_by(Duration rest, Instant now) {
  if (tenure_) tenure_->resign(now, rest);
  rehearse_due_ = now + rehearse_periods * options_.period;
  table_due_ = plan_due_ = alive_due_ = end_of_time;
  in_flight_.reset();
}

void Machine::stepped_down(std::string why, Instant now, Effects& effects) {
  stand_by(Duration::zero(), now);
  effects.note("stepped_down", std::move(why));
  holding_ = false;
  for (const auto name : {plan_alert, coverage_alert, refused_alert, off_alert, limit_alert})
    alerts_.clear(name, effects);
}

void Machine::resign(std::string_view why, Instant now, Effects& effects) {
  const Duration rest = 5 * options_.leader_timeout;
  effects.note("resigned", std::string(why), schema::Severity::warning);
  election_->resign(now, rest);
  stand_by(rest, now);
}

void Machine::keep_term(Keeping why, Effects& effects) {
  keeping_ = why;
  kept_before_ = std::exchange(kept_, true);  // on_persist_failed() comes at once if it is not so
  effects.persist.push_back({std::string(term_name), fmt::format("{}\n", own_counter_)});
  alerts_.clear(kit::AlertName::term_not_kept, effects);
}

/// Who cannot make its term durable does not lead, as long as another may. If in all the time that it rested nobody else
/// led, nobody can, and a leader whose term is not durable is better than none: started anew it hears of that term from
/// receipts before it stands.
void Machine::on_persist_failed(const kit::Persist&, Instant now, Effects& effects) {
  const bool last_resort = !kept_before_ && nobody_else_led_;
  kept_ = false;
  keep_due_ = now + keep_again;
  std::string what = "an optimizer cannot write its term and does not lead";
  if (keeping_ == Keeping::to_lead && !last_resort) {
    could_not_lead_at_ = now;
    resign("the term could not be made durable", now, effects);
  } else if (keeping_ == Keeping::to_lead) {
    effects.note("leads", fmt::format("term {}, which is not durable: nobody else leads", own_counter_),
                 schema::Severity::critical);
  }
  if (election_->leads()) what = "a leader cannot write its term, and leads since nobody else does";
  alerts_.raise(kit::AlertName::term_not_kept, std::move(what), options_.id.str(), now, effects);
  effects.wake_at(next_due(now));
}

double Machine::coverage(Instant now) const {
  return policy_ ? picture_.coverage(*table_, policy_->stale.signal_hard, now) : 0;
}

Facts Machine::look(Instant now, PlannedFor what) const {
  Facts out = gather(table_, policy_, picture_, demand_, weights_in_force(), now, what);
  churn_.fill(out, now);
  return out;
}

/// A leader's solver has had its time. The plan after that is asked for when it would have been anyway.
void Machine::give_up_solving(Instant now, Effects& effects) {
  in_flight_.reset();
  const Facts facts = look(now, PlannedFor::most);
  solve_failed("late", fmt::format("no plan within {:.1f} s", to_seconds(patience())), facts, coverage(now),
               now, effects);
}

void Machine::plan(Instant now, Effects& effects) {
  if (in_flight_) {  // what has changed meanwhile is planned for as soon as that is done
    plan_due_ = now + react;
    return;
  }
  plan_due_ = now + options_.period;
  if (!policy_) return;
  Facts facts = look(now, demand_level_.next());
  const double heard = coverage(now);
  holding_ = heard < policy_->lead.coverage;
  if (holding_) {
    alerts_.raise(
        coverage_alert,
        fmt::format(
            "signals of only {:.0f} % of the engines are heard, the policy wants {:.0f} %; the plan in "
            "force is kept",
            100 * heard, 100 * policy_->lead.coverage),
        options_.id.str(), now, effects);
    return;
  }
  alerts_.clear(coverage_alert, effects);
  facts.fleet.limits.load_ceiling *= calibration_.headroom();
  auto built = optimizer::build_problem(facts.fleet);
  if (!built) return solve_failed("no_problem", built.error().text(), facts, heard, now, effects);
  ask_solver(std::move(facts), *std::move(built), heard, false, now, effects);
}

void Machine::ask_solver(Facts facts, optimizer::BuiltProblem built, double heard, bool rehearsal,
                         Instant since, Effects& effects) {
  keep_shed_order(*policy_, built.problem);
  optimizer::WarmState warm;
  if (solved_)
    warm = {solved_->plan.price, optimizer::carried_flows(solved_->problem, solved_->plan, built.problem),
            optimizer::carried_shed(solved_->problem, solved_->plan, built.problem)};
  effects.command(Solve{++number_, built.problem, std::move(warm)});
  in_flight_ = InFlight{number_, std::move(facts), std::move(built), heard, since, rehearsal};
}

bool Machine::plan_for_less(InFlight& flight, const optimizer::Plan& plan, Instant now, Effects& effects) {
  const bool in_time = now - flight.since <= options_.period / 2;
  if (demand_level_.take(!refuses(flight.built.problem, plan), in_time)) return false;
  Facts less = flight.facts;
  plan_for(demand_level_.next(), less);
  auto built = optimizer::build_problem(less.fleet);
  if (!built) return false;
  solved_ = Solved{std::move(flight.built.problem), plan};
  ask_solver(std::move(less), *std::move(built), flight.coverage, flight.rehearsal, flight.since, effects);
  return true;
}

void Machine::on(const Input& input, Instant now, Effects& effects) {
  coordinate(now, effects);
  if (const auto* answer = std::get_if<EtcdAnswer>(&input))
    hear_etcd(*answer, now, effects);
  else
    hear_solver(input, now, effects);
  effects.wake_at(next_due(now));
}

void Machine::hear_solver(const Input& input, Instant now, Effects& effects) {
  const std::uint64_t number = std::visit([](const auto& i) { return i.number; }, input);
  if (!in_flight_ || in_flight_->number != number) return;  // given up meanwhile
  InFlight flight = *std::exchange(in_flight_, std::nullopt);
  if (const auto* done = std::get_if<SolveDone>(&input);
      done && plan_for_less(flight, done->plan, now, effects))
    return;
  if (flight.rehearsal) return rehearsed(std::move(flight), input, now, effects);
  if (const auto* failed = std::get_if<SolveFailed>(&input))
    return solve_failed(failed->fault, failed->detail, flight.facts, flight.coverage, now, effects);
  const optimizer::Plan fresh = within_limits(flight.facts, flight.built, std::get<SolveDone>(input).plan);
  optimizer::KeptPlan kept = optimizer::keep_in_force(
      flight.built.problem, fresh, least_gain * flight.facts.policy->objective.weights.churn);
  optimizer::Plan& plan = kept.plan;
  auto snapshots = snapshots_of(flight.facts, flight.built, plan, options_.period);
  placer_.add_groups(flight.facts, flight.built, plan, demand_, now, snapshots);
  const std::string cause = cause_of(planned_ ? &*planned_ : nullptr, flight.facts, kept.stands);
  const auto published = publish(std::move(snapshots), flight.facts, flight.coverage, cause, now, effects);
  if (!published)
    return solve_failed("refused", published.error().text(), flight.facts, flight.coverage, now, effects);
  failed_solves_ = 0;
  alerts_.clear(plan_alert, effects);
  calibration_.expect(flight.facts, flight.built.problem, plan);
  calibration_.refuses(std::ranges::any_of(in_force_, [](const schema::RoutingSnapshot& s) {
    return std::ranges::any_of(s.admits, [](const auto& row) { return row.admit < 1; });
  }));
  planned_ = std::move(flight.facts);
  solved_ = Solved{std::move(flight.built.problem), std::move(plan)};
}

void Machine::solve_failed(std::string_view fault, const std::string& detail, const Facts& facts,
                           double heard, Instant now, Effects& effects) {
  ++failed_solves_;
  effects.note("no_plan", fmt::format("{}: {}", fault, detail), schema::Severity::warning);
  alerts_.raise(plan_alert, fmt::format("no new plan ({}): the hold plan is in force", fault),
                options_.id.str(), now, effects);
  solved_.reset();
  if (failed_solves_ >= most_failed_solves && election_->has_standby(now)) {
    failed_solves_ = 0;
    return resign(fmt::format("{} periods without a plan", most_failed_solves), now, effects);
  }
  hold(facts, heard, now, effects);
}

void Machine::hold(const Facts& facts, double heard, Instant now, Effects& effects) {
  auto held = hold_plan(in_force_, facts, options_.period);
  if (!held) return effects.note("nothing_to_hold", "no plan under this policy and table is in force");
  const auto published =
      publish(*std::move(held), facts, heard, "no new plan: what was in force is held", now, effects);
  if (!published)
    alerts_.raise(refused_alert,
                  "verification refuses the hold plan too; nothing is published: " + published.error().text(),
                  options_.id.str(), now, effects);
}

Status Machine::publish(std::vector<schema::RoutingSnapshot> snapshots, const Facts& facts, double heard,
                        std::string cause, Instant now, Effects& effects) {
  for (auto& snapshot : snapshots) {
    snapshot.version = {election_->term(), sequence_ + 1};
    snapshot.as_of_age = now - facts.as_of;
    snapshot.cause = cause;
    if (const auto sound = schema::check(snapshot); !sound) return sound;
  }
  if (const auto verified = options_.verify(snapshots, facts, heard); !verified) return verified;
  ++sequence_;
  alerts_.clear(refused_alert, effects);
  say_limits_not_held(snapshots, facts, now, effects);
  for (const auto& snapshot : snapshots) effects.say(snapshot);
  for (const auto& before : in_force_) {
    const auto after = std::ranges::find(snapshots, before.cluster, &schema::RoutingSnapshot::cluster);
    if (after != snapshots.end()) churn_.note(before, *after, policy_->limits.churn, now);
  }
  in_force_ = std::move(snapshots);
  return {};
}

void Machine::say_keep_alive(Instant now, Effects& effects) {
  effects.say(
      schema::KeepAlive{{election_->term(), sequence_}, digest_over(in_force_), holding_, coverage(now)});
  alive_due_ = now + options_.keep_alive;
}

std::map<ClusterName, WeightMap> Machine::weights_in_force() const {
  std::map<ClusterName, WeightMap> out;
  for (const auto& snapshot : in_force_) {
    if (!policy_ || snapshot.policy != policy_->hash || snapshot.table != table_->content) continue;
    for (const auto& row : snapshot.weights)
      out[snapshot.cluster][{row.request_class, row.engine}] = row.weight;
  }
  return out;
}

Instant Machine::next_due(Instant now) const {
  const Instant stand = tenure_ ? tenure_->due() : election_ ? election_->due(now) : now;
  return std::max(now, std::min({stand, plan_due_, solve_due(), alive_due_, table_due_, tidy_due_, keep_due_,
                                 rehearse_due_}));
}

View Machine::view() const {
  View out;
  out.holding = holding_;
  out.failed_solves = failed_solves_;
  out.calibration = last_calibration_;
  kit::Standing& s = out.standing;
  if (!election_) return out;
  s.leads = election_->leads();
  s.term = election_->term();
  if (policy_) s.policy = policy_->hash;
  for (const auto& snapshot : in_force_) s.snapshot = std::max(s.snapshot, snapshot.version);
  s.ready = policy_ != nullptr && (!s.leads || sequence_ > 0);
  s.state = !policy_         ? "no policy yet"
            : !s.leads       ? s.term.optimizer == options_.id || s.term.optimizer.empty()
                                   ? "stands by"
                                   : fmt::format("stands by for {}{}", s.term.optimizer,
                                           solver_fails_ ? ", but its solver fails" : "")
                  : holding_ ? "leads, and holds the plan: it hears too little"
            : sequence_ == 0 ? "leads, no plan yet"
                             : fmt::format("leads, plan {}", sequence_);
  return out;
}

}  // namespace signalbox::global_optimizer
