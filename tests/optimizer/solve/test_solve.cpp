#include "optimizer/synthetic/synthetic.hpp"
#include "tests/optimizer/solve/checks.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
using namespace signalbox::optimizer::test;

BOOST_AUTO_TEST_CASE(every_plan_is_feasible_and_its_bound_is_below_the_best_plan_ever_found) {
  Rng rng(11);
  int certified = 0;
  for (int i = 0; i < 300; ++i) {
    const Problem problem = random_problem(rng);
    const Plan quick = solved(problem, 1e-3);
    SolveOptions options;
    options.target_gap = 1e-6;
    options.max_rounds = 10;
    const Plan slow = *solve(problem, options, {});
    check_feasible(problem, slow);
    const double size = std::max(1e-6, std::abs(slow.certificate.objective));
    // The certificate never claims less than the true gap: no plan is below either bound.
    BOOST_TEST(quick.certificate.lower_bound <= slow.certificate.objective + 1e-9 * size);
    BOOST_TEST(slow.certificate.lower_bound <= quick.certificate.objective + 1e-9 * size);
    certified += quick.stop == Stop::certified;
  }
  BOOST_TEST(certified >= 270);
}

BOOST_AUTO_TEST_CASE(the_same_input_gives_the_same_bits) {
  const auto built = build_problem(synthetic_fleet({5, 50, 3, 0.8, false, 3}));
  const Plan a = solved(built->problem), b = solved(built->problem);
  BOOST_TEST(a.flow_per_s == b.flow_per_s);
  BOOST_TEST(a.price == b.price);
  BOOST_TEST(a.certificate.objective == b.certificate.objective);
}

BOOST_AUTO_TEST_CASE(more_demand_never_costs_less_and_a_faster_engine_never_gets_less) {
  Rng rng(5);
  for (int i = 0; i < 20; ++i) {
    FleetState fleet = synthetic_fleet({3, 12, 2, 0.6, false, 100 + std::uint64_t(i)});
    const Plan before = solved(build_problem(fleet)->problem, 1e-5);
    FleetState faster = fleet;
    const std::size_t e = rng.below(fleet.engines.size());
    faster.engines[e].step.slowness *= 0.8;
    const auto built = build_problem(faster);
    const Plan after = solved(built->problem, 1e-5);
    double served_before = 0, served_after = 0;
    const auto old = build_problem(fleet);
    for (std::size_t k = 0; k < built->problem.pairs.size(); ++k)
      if (built->problem.pairs[k].engine == EngineIndex(e))
        served_before += before.flow_per_s[k], served_after += after.flow_per_s[k];
    BOOST_TEST(served_after >= served_before * (1.0 - 5e-2));
    BOOST_TEST(after.certificate.lower_bound <= before.certificate.objective * (1.0 + 1e-9));
    for (auto& traffic : fleet.traffic) traffic.demand_per_s *= 1.1;
    BOOST_TEST(solved(build_problem(fleet)->problem, 1e-5).certificate.objective >=
               before.certificate.lower_bound);
  }
}

BOOST_AUTO_TEST_CASE(equal_engines_get_equal_loads) {
  Sketch sketch;
  for (int e = 0; e < 6; ++e) sketch.engine(25, 1, 0.9);
  for (int s = 0; s < 4; ++s) sketch.source(8, 800, {0, 0, 0, 0, 0, 0});
  const Plan plan = solved(sketch.take(), 1e-6);
  for (int e = 0; e < 6; ++e)
    BOOST_TEST(plan.load[std::size_t(e)] == 3.2 / 6, boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(a_warm_start_finds_the_same_optimum_with_less_work) {
  const FleetState fleet = synthetic_fleet({10, 120, 4, 0.7, false, 9});
  const auto built = build_problem(fleet);
  const Plan cold = solved(built->problem, 1e-3);
  FleetState moved = fleet;
  Rng rng(4);
  perturb_demand(moved, 0.02, rng);
  const auto next = build_problem(moved);
  const WarmState state{cold.price, carried_flows(built->problem, cold, next->problem),
                        carried_shed(built->problem, cold, next->problem)};
  const Plan warm = solved(next->problem, 1e-3, state), again = solved(next->problem, 1e-3);
  BOOST_TEST((warm.stop == Stop::certified));
  BOOST_TEST(warm.dual_iterations <= again.dual_iterations);
  BOOST_TEST(std::abs(warm.certificate.objective - again.certificate.objective) <=
             2e-3 * again.certificate.objective);
}

BOOST_AUTO_TEST_CASE(a_warm_state_of_another_fleet_is_no_harm) {
  const auto built = build_problem(synthetic_fleet({5, 50, 3, 0.7, false, 1}));
  WarmState wild{std::vector<double>(50, 1e9), std::vector<double>(built->problem.pairs.size(), 1.0), {}};
  BOOST_TEST(solved(built->problem, 1e-3, wild).certificate.relative_gap < 3e-3);
  wild.price.resize(3);
  BOOST_TEST(solved(built->problem, 1e-3, wild).certificate.relative_gap < 3e-3);
}

BOOST_AUTO_TEST_CASE(fleets_are_certified_at_every_load) {
  struct Row {
    const char* name;
    double utilisation;
    bool ties;
  };
  for (const Row& row : {Row{"light", 0.3, false}, Row{"normal", 0.7, false}, Row{"full", 0.9, false},
                         Row{"over", 1.3, false}, Row{"ties", 0.7, true}}) {
    const auto built = build_problem(synthetic_fleet({8, 80, 4, row.utilisation, row.ties, 2}));
    const Plan plan = solved(built->problem, 1e-3);
    BOOST_TEST(plan.certificate.relative_gap < 1.5e-2, row.name << ": gap " << plan.certificate.relative_gap);
  }
}

BOOST_AUTO_TEST_CASE(a_malformed_problem_is_refused) {
  Problem problem = Sketch().engine(20, 1, 0.8).source(5, 1000, {0.0}).take();
  problem.pairs[0].engine = EngineIndex(9);
  BOOST_TEST(!solve(problem, {}, {}).has_value());
  problem = Sketch().engine(20, 1, 0.8).source(5, std::nan(""), {0.0}).take();
  BOOST_TEST(!solve(problem, {}, {}).has_value());
}
