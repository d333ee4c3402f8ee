#include "optimizer/synthetic/synthetic.hpp"
#include "tests/optimizer/solve/checks.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
using namespace signalbox::optimizer::test;
namespace tt = boost::test_tools;

namespace {

Problem three_engines(std::vector<double> costs) {
  return Sketch()
      .engine(2, 1, 0.9)
      .engine(2, 1, 0.9)
      .engine(2, 1, 0.9)
      .source(6, 100, std::move(costs))
      .take();
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_an_engine_may_not_take_goes_to_the_next_best) {
  Problem problem = three_engines({0.0, 2.0, 9.0});
  BOOST_TEST(solved(problem).flow_per_s[0] > 5.0);
  problem.caps = {{each_alone(3), 0.5}};
  const Plan plan = solved(problem);
  BOOST_TEST(plan.flow_per_s[0] == 3.0, tt::tolerance(1e-3));
  BOOST_TEST(plan.flow_per_s[1] == 3.0, tt::tolerance(1e-3));
  BOOST_TEST((plan.stop == Stop::certified));
  // One request more, of which half may go to each, costs what the dearer one does.
  BOOST_TEST(plan.source_price_s[0] == 2.0 + 0.1 * problem.engines[1].curve.marginal(0.3),
             tt::tolerance(1e-2));
}

BOOST_AUTO_TEST_CASE(caps_of_a_rack_are_shared_by_its_engines) {
  Problem problem = three_engines({0, 0, 9.0});
  problem.caps = {{each_alone(3), 0.7}, {{0, 0, 1}, 0.8}};
  const Plan plan = solved(problem);
  BOOST_TEST(plan.flow_per_s[0] == 2.4, tt::tolerance(1e-2));
  BOOST_TEST(plan.flow_per_s[1] == 2.4, tt::tolerance(1e-2));
  BOOST_TEST(plan.flow_per_s[2] == 1.2, tt::tolerance(1e-2));
}

/// The engines' caps exceed by more than their rack's: they are met, and the rack has room left.
BOOST_AUTO_TEST_CASE(an_engine_s_cap_may_leave_its_rack_below_its_own) {
  Problem problem = three_engines({0, 8.0, 9.0});
  problem.caps = {{each_alone(3), 0.5}, {{0, 0, 1}, 0.9}};
  const Plan plan = solved(problem);
  BOOST_TEST(plan.flow_per_s[0] == 3.0, tt::tolerance(1e-3));
  BOOST_TEST(plan.flow_per_s[1] <= 2.4 * (1 + 1e-9));
  BOOST_TEST(plan.flow_per_s[2] >= 0.6 * (1 - 1e-9));
  BOOST_TEST(plan.shed_per_s[0] == 0.0);
}

BOOST_AUTO_TEST_CASE(a_capped_plan_is_certified_and_no_better_one_is_found_later) {
  Rng rng(17);
  std::size_t certified = 0, bound_by_caps = 0;
  constexpr int instances = 200;
  for (int i = 0; i < instances; ++i) {
    Problem problem = random_problem(rng);
    const Plan free = solved(problem);
    problem.caps = random_caps(problem, rng);
    const Plan plan = solved(problem, 1e-3), closer = solved(problem, 1e-5);
    certified += plan.stop == Stop::certified;
    bound_by_caps += !keeps_caps(problem, free.flow_per_s);
    const double size = std::max(1e-6, std::abs(plan.certificate.objective));
    BOOST_TEST(plan.certificate.lower_bound <= closer.certificate.objective + 1e-9 * size, "instance " << i);
    BOOST_TEST(free.certificate.lower_bound <= plan.certificate.objective + 1e-9 * size, "instance " << i);
    BOOST_TEST(plan.certificate.relative_gap < 0.02,
               "instance " << i << ": gap " << plan.certificate.relative_gap);
  }
  BOOST_TEST(certified >= 0.95 * instances, certified << " of " << instances << " are certified");
  BOOST_TEST(bound_by_caps > 0.3 * instances);
}

BOOST_AUTO_TEST_CASE(a_fleet_s_capped_plan_is_certified_cold_and_warm) {
  for (const double utilisation : {0.5, 0.7, 0.9}) {
    FleetState fleet = synthetic_fleet({20, 200, 5, utilisation, false, 4});
    fleet.caps = {{each_alone(200), 0.2}, {neighbours(200, 10), 0.4}, {neighbours(200, 40), 0.8}};
    const Problem problem = build_problem(fleet)->problem;
    const Plan cold = solved(problem, 1e-3);
    BOOST_TEST((cold.stop == Stop::certified), utilisation << ": gap " << cold.certificate.relative_gap);
    const Plan warm = solved(problem, 1e-3, {cold.price, cold.flow_per_s, cold.shed_per_s});
    BOOST_TEST((warm.stop == Stop::certified), utilisation << ": gap " << warm.certificate.relative_gap);
  }
}
