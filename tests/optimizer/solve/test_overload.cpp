#include "tests/optimizer/solve/checks.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
using namespace signalbox::optimizer::test;

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_and_the_ceiling_holds) {
  const Problem problem = Sketch().engine(20, 1, 0.8).source(20, 1e5, {0.0}).take();
  const Plan plan = solved(problem, 1e-9);
  BOOST_TEST(plan.load[0] == 0.8, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(plan.shed_per_s[0] == 12.0, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(admit_fraction(problem, plan, SourceIndex(0)) == 0.4, boost::test_tools::tolerance(1e-6));
  bool ceiling = false, shed = false;
  for (const BindingLimit& b : plan.binding)
    ceiling |= b.limit == Limit::engine_ceiling, shed |= b.limit == Limit::shed;
  BOOST_TEST((ceiling && shed));
}

BOOST_AUTO_TEST_CASE(the_cheapest_refusals_go_first) {
  const Problem problem =
      Sketch().engine(20, 1, 0.8).source(5, 1e6, {0.0}).source(5, 1e4, {0.0}).source(5, 1e2, {0.0}).take();
  const Plan plan = solved(problem, 1e-9);
  BOOST_TEST(plan.shed_per_s[0] < 1e-6);
  BOOST_TEST(plan.shed_per_s[1] == 2.0, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(plan.shed_per_s[2] == 5.0, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(a_floor_is_refused_only_at_its_own_cost) {
  Problem problem = Sketch().engine(20, 1, 0.8).source(10, 1e5, {0.0}).source(10, 1e2, {0.0}).take();
  problem.sources[1].floor_fraction = 0.05;
  problem.sources[1].floor_shed_cost_s = 1e6;
  const Plan plan = solved(problem, 1e-9);
  BOOST_TEST(plan.shed_per_s[1] == 9.5, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(plan.shed_per_s[0] == 2.5, boost::test_tools::tolerance(1e-4));
}

BOOST_AUTO_TEST_CASE(nowhere_to_go_is_not_an_error) {
  struct Row {
    const char* name;
    Problem problem;
  };
  const Row rows[] = {{"no engines", Sketch().source(3, 10, {}).take()},
                      {"all gone", Sketch().engine(20, 1, 0.0).source(3, 10, {0.0}).take()},
                      {"no demand", Sketch().engine(20, 1, 0.8).source(0, 10, {0.0}).take()},
                      {"nothing at all", Problem{}}};
  for (const Row& row : rows) {
    const Plan plan = solved(row.problem);
    BOOST_TEST(plan.certificate.relative_gap < 1e-6, row.name);
    for (std::size_t s = 0; s < plan.shed_per_s.size(); ++s)
      BOOST_TEST(plan.shed_per_s[s] == row.problem.sources[s].demand_per_s, row.name);
  }
}

BOOST_AUTO_TEST_CASE(an_engine_without_a_ceiling_gets_nothing) {
  const Problem problem = Sketch().engine(20, 1, 0.0).engine(20, 1, 0.8).source(5, 1000, {0.0, 0.5}).take();
  const Plan plan = solved(problem);
  BOOST_TEST(plan.flow_per_s[0] == 0.0);
  BOOST_TEST(plan.flow_per_s[1] == 5.0, boost::test_tools::tolerance(1e-9));
}

/// What is refused costs a thousand times as much as what is served: the flows of those who are served are at their optimum all the same.
BOOST_AUTO_TEST_CASE(dear_refusals_leave_no_room_for_needless_ways) {
  const Problem problem = Sketch()
                              .engine(20, 1, 0.8)
                              .engine(20, 1, 0.8)
                              .source(10, 1e5, {0.0, 0.3})
                              .source(10, 1e5, {0.3, 0.0})
                              .take();
  WarmState crossed;
  crossed.price = {100, 100};
  crossed.flow_per_s = {4, 4, 4, 4};
  crossed.shed_per_s = {2, 2};
  for (const WarmState& warm : {WarmState{}, crossed}) {
    const Plan plan = solved(problem, 1e-3, warm);
    BOOST_TEST(plan.flow_per_s[1] + plan.flow_per_s[2] < 0.04 * (plan.flow_per_s[0] + plan.flow_per_s[3]));
  }
}
