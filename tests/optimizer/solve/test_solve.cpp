#include "optimizer/synthetic/synthetic.hpp"
#include "tests/optimizer/solve/checks.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
using namespace signalbox::optimizer::test;

BOOST_AUTO_TEST_CASE(every_plan_is_feasible_and_its_bound_is_below_the_best_plan_ever_found) {
  Rng rng(11);
  for (int i = 0; i < 300; ++i) {
    const Problem problem = random_problem(rng);
    const Plan quick = solved(problem, 1e-3);
    SolveOptions options;
    options.target_gap = 1e-6;
    const Plan slow = *solve(problem, options, {});
    check_feasible(problem, slow);
    const double size = std::max(1e-6, std::abs(slow.certificate.objective));
    // The certificate never claims less than the true gap: no plan is below either bound.
    BOOST_TEST(quick.certificate.lower_bound <= slow.certificate.objective + 1e-9 * size);
    BOOST_TEST(slow.certificate.lower_bound <= quick.certificate.objective + 1e-9 * size);
    BOOST_TEST((quick.stop == Stop::certified),
               "instance " << i << ": gap " << quick.certificate.relative_gap);
  }
}

BOOST_AUTO_TEST_CASE(the_same_input_gives_the_same_bits) {
  const auto built = build_problem(synthetic_fleet({5, 50, 3, 0.8, false, 3}));
  const Plan a = solved(built->problem), b = solved(built->problem);
  BOOST_TEST(a.flow_per_s == b.flow_per_s);
  BOOST_TEST(a.price == b.price);
  BOOST_TEST(a.certificate.objective == b.certificate.objective);
}

namespace {

/// How far a load may lie from the optimum's: the cost of a load error is at least half of the curvature times its square, and the
/// plan's whole error is at most its gap.
double load_error(const Problem& problem, const Plan& plan, EngineIndex e) {
  const double gap = plan.certificate.objective - plan.certificate.lower_bound;
  const double load = plan.load[e.at()];
  double error = 0.0;
  for (int i = 0; i < 30; ++i)  // the curvature falls with the load: take it where the load may be
    error = std::sqrt(2.0 * std::max(gap, 0.0) /
                      problem.engines[e.at()].curve.curvature(std::max(0.0, load - error)));
  return error;
}

double served_by(const Problem& problem, const Plan& plan, EngineIndex e) {
  double sum = 0.0;
  for (std::size_t k = 0; k < problem.pairs.size(); ++k)
    if (problem.pairs[k].engine == e) sum += plan.flow_per_s[k];
  return sum;
}

double least_work(const Problem& problem, EngineIndex e) {
  double least = 1e300;
  for (const Pair& pair : problem.pairs)
    if (pair.engine == e) least = std::min(least, pair.work_s);
  return least;
}

}  // namespace

BOOST_AUTO_TEST_CASE(more_demand_never_costs_less_and_a_faster_engine_never_gets_less) {
  Rng rng(5);
  for (int i = 0; i < 20; ++i) {
    FleetState fleet = synthetic_fleet({3, 12, 2, 0.6, false, 100 + std::uint64_t(i)});
    const auto old = build_problem(fleet);
    const Plan before = solved(old->problem, 1e-8);
    FleetState faster = fleet;
    const EngineIndex e(rng.below(fleet.engines.size()));
    faster.engines[e.at()].step.slowness *= 0.8;
    const auto built = build_problem(faster);
    const Plan after = solved(built->problem, 1e-8);
    const double error = load_error(old->problem, before, e) / least_work(old->problem, e) +
                         load_error(built->problem, after, e) / least_work(built->problem, e);
    BOOST_TEST(served_by(built->problem, after, e) >= served_by(old->problem, before, e) - error);
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
    BOOST_TEST(plan.load[std::size_t(e)] == 3.2 / 6, boost::test_tools::tolerance(1e-4));
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
  BOOST_TEST(solved(built->problem, 1e-3, wild).certificate.relative_gap <= 1e-3);
  wild.price.resize(3);
  BOOST_TEST(solved(built->problem, 1e-3, wild).certificate.relative_gap <= 1e-3);
}

BOOST_AUTO_TEST_CASE(fleets_are_certified_at_every_load) {
  struct Row {
    const char* name;
    double utilisation;
    bool ties;
  };
  for (const Row& row : {Row{"light", 0.3, false}, Row{"normal", 0.7, false}, Row{"full", 0.9, false},
                         Row{"over", 1.3, false}, Row{"ties", 0.7, true}}) {
    for (const std::uint32_t clusters : {8u, 60u}) {  // with 240 rows it begins with an image
      const auto built = build_problem(synthetic_fleet({clusters, 80, 4, row.utilisation, row.ties, 2}));
      const Plan plan = solved(built->problem, 1e-3);
      BOOST_TEST(plan.certificate.relative_gap <= 1e-3,
                 row.name << ": gap " << plan.certificate.relative_gap);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_malformed_problem_is_refused) {
  Problem problem = Sketch().engine(20, 1, 0.8).source(5, 1000, {0.0}).take();
  problem.pairs[0].engine = EngineIndex(9);
  BOOST_TEST(!solve(problem, {}, {}).has_value());
  problem = Sketch().engine(20, 1, 0.8).source(5, std::nan(""), {0.0}).take();
  BOOST_TEST(!solve(problem, {}, {}).has_value());
}
