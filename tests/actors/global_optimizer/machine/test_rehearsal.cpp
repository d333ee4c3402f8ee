// What a standby does of a leader's work: it plans from what it hears itself, and says when the leader plans otherwise.
#include <algorithm>

#include "actors/global_optimizer/machine/machine.hpp"
#include "tests/actors/global_optimizer/machine/planned.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using namespace signalbox::global_optimizer::testing;

namespace {

const ClusterName east("east");
constexpr std::string_view leader_id = "opt-1", standby_id = "opt-2";

/// How the leader's solver errs.
enum class Leading : std::uint8_t { well, all_far };

/// A leader and a standby that hear the same small fleet; each solver answers at once.
class Two {
 public:
  Leading leading = Leading::well;
  bool standby_fails = false;
  std::vector<schema::Alert> alerts;       ///< the standby's
  std::size_t rehearsals = 0, solves = 0;  ///< the latter the leader's
  std::uint64_t offered = 20;              ///< requests in half a second
  schema::RoutingSnapshot last;            ///< of the east

  Machine& standby() { return standby_; }

  void run(Duration time) {
    for (const Instant end = now_ + time; now_ < end; now_ += 100ms) {
      wake(leader_, leader_wake_, leader_id);
      wake(standby_, standby_wake_, standby_id);
      if (now_.time_since_epoch() % 500ms == Duration::zero()) hear_the_fleet();
    }
  }

 private:
  static Machine machine(std::string_view id) {
    Options o;
    o.id = ProcessName(id);
    o.table = tests::small_table();
    o.verify = [](const auto&, const auto&, double) { return Status(); };
    return Machine(std::move(o));
  }

  void wake(Machine& m, Instant& due, std::string_view id) {
    if (now_ < due) return;
    Machine::Effects effects;
    m.on_wake(now_, effects);
    perform(std::move(effects), id);
  }

  /// A router's demand, what the proxy reads, and that both optimizers live.
  void hear_the_fleet() {
    const policy::CompiledPolicy policy = tests::small_policy();
    schema::Policy published;
    published.name = policy.name, published.version = policy.version;
    published.hash = policy.hash, published.text = tests::small_policy_text();
    tell_all("keeper", published);
    tell_all("router", report_of(east, policy.hash, offered, 400, 100));
    for (const auto& row : tests::small_table().engines) {
      schema::EngineSignal signal;
      signal.cluster = tests::small_table().clusters[row.cluster.at()].name;
      signal.engine = row.name;
      signal.scrape = schema::ScrapeState::ok;
      tell_all("proxy", signal);
    }
  }

  void tell(Machine& m, std::string_view to, std::string_view from, const schema::Message& message) {
    schema::Delivery delivery;
    delivery.envelope.source = ProcessName(from);
    delivery.message = message;
    Machine::Effects effects;
    m.on(delivery, now_, effects);
    perform(std::move(effects), to);
  }
  void tell_all(std::string_view from, const schema::Message& message) {
    tell(leader_, leader_id, from, message);
    tell(standby_, standby_id, from, message);
  }

  void perform(Machine::Effects effects, std::string_view id) {
    const bool leads = id == leader_id;
    Machine& self = leads ? leader_ : standby_;
    if (effects.wake) (leads ? leader_wake_ : standby_wake_) = *effects.wake;
    for (const auto& message : effects.publish) {
      const auto* alert = std::get_if<schema::Alert>(&message);
      if (alert && !leads) alerts.push_back(*alert);
      const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&message);
      if (snapshot && leads && snapshot->cluster == east) last = *snapshot;
      if (leads) tell(standby_, standby_id, leader_id, message);
    }
    for (const auto& command : effects.commands) {
      const auto& solve = std::get<Solve>(command);
      ++(leads ? solves : rehearsals);
      Machine::Effects next;
      self.on(answer(solve, leads), now_, next);
      perform(std::move(next), id);
    }
  }

  Machine::Input answer(const Solve& solve, bool leads) const {
    if (!leads && standby_fails) return SolveFailed{solve.number, "crashed", "told to"};
    auto plan = optimizer::solve(solve.problem, {}, {});
    BOOST_REQUIRE(plan.has_value());
    if (leads && leading == Leading::all_far) send_all_to_the_west(solve.problem, *plan);
    return SolveDone{solve.number, *std::move(plan)};
  }

  static void send_all_to_the_west(const optimizer::Problem& problem, optimizer::Plan& plan) {
    std::ranges::fill(plan.load, 0.0);
    for (const auto& source : problem.sources)
      for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
        const bool west = problem.pairs[i].engine == EngineIndex(2);
        plan.flow_per_s[i] = west ? source.demand_per_s : 0;
        plan.load[problem.pairs[i].engine.at()] += plan.flow_per_s[i] * problem.pairs[i].work_s;
      }
  }

  Instant now_ = instant_at(100s), leader_wake_ = now_, standby_wake_ = now_ + 500ms;
  Machine leader_ = machine(leader_id), standby_ = machine(standby_id);
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_standby_solves_too_and_has_nothing_against_a_good_plan) {
  Two two;
  two.run(30s);
  BOOST_TEST(two.rehearsals > 8u);
  BOOST_TEST(two.alerts.empty());
  BOOST_TEST(two.standby().view().standing.state == "stands by for opt-1");
}

BOOST_AUTO_TEST_CASE(a_leader_that_plans_otherwise_again_and_again_is_noticed_until_it_does_not) {
  Two two;
  two.run(5s);
  two.leading = Leading::all_far;
  two.run(20s);
  BOOST_TEST_REQUIRE(!two.alerts.empty());
  BOOST_TEST(two.alerts.front().name.str() == "plans-diverged");
  BOOST_TEST(two.alerts.back().raised);
  BOOST_TEST(two.alerts.back().summary.find("opt-2 would have moved weights that opt-1 leaves") !=
             std::string::npos);
  two.leading = Leading::well;
  two.run(10s);
  BOOST_TEST(!two.alerts.back().raised);
}

BOOST_AUTO_TEST_CASE(a_standby_whose_solver_fails_says_so_and_accuses_nobody) {
  Two two;
  two.standby_fails = true;
  two.leading = Leading::all_far;
  two.run(30s);
  BOOST_TEST(two.rehearsals > 8u);
  BOOST_TEST(two.alerts.empty());
  BOOST_TEST(two.standby().view().standing.state == "stands by for opt-1, but its solver fails");
}

BOOST_AUTO_TEST_CASE(in_an_overload_both_plan_for_what_is_sure_and_solve_once_a_period) {
  Two two;
  two.offered = 4;
  two.run(10s);
  const double planned_before = two.last.admits.front().planned_rps;
  BOOST_TEST(planned_before > 8);  // for more than comes: there is room
  two.offered = 40;
  two.run(10s);
  BOOST_TEST(two.last.admits.front().admit < 0.9);
  BOOST_TEST(two.last.admits.front().planned_rps < 80);
  two.solves = two.rehearsals = 0;
  two.run(10s);
  BOOST_TEST(two.solves <= 11u);
  BOOST_TEST(two.rehearsals <= 6u);
  BOOST_TEST(two.alerts.empty());
  two.offered = 4;
  two.run(40s);
  BOOST_TEST(two.last.admits.front().admit == 1);
  BOOST_TEST(two.last.admits.front().planned_rps > 8);
}
