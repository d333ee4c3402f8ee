#include "tests/optimizer/solve/checks.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
using namespace signalbox::optimizer::test;

BOOST_AUTO_TEST_CASE(two_equal_engines_share_equally) {
  const Problem problem = Sketch().engine(20, 1, 0.9).engine(20, 1, 0.9).source(10, 500, {0, 0}).take();
  const Plan plan = solved(problem, 1e-9);
  BOOST_TEST(plan.flow_per_s[0] == 5.0, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(plan.certificate.objective == 2 * 20 * 0.5 / 0.5, boost::test_tools::tolerance(1e-7));
}

// Without linear costs the marginals are equal: q1/(1-y1)^2 = q2/(1-y2)^2, so (1-y1)/(1-y2) = sqrt(q1/q2).
BOOST_AUTO_TEST_CASE(two_unequal_engines_have_equal_marginals) {
  const double q1 = 20, q2 = 45, total = 1.0;
  const Problem problem = Sketch().engine(q1, 1, 0.95).engine(q2, 1, 0.95).source(10, 1000, {0, 0}).take();
  const double ratio = std::sqrt(q1 / q2);
  const double idle2 = (2.0 - total) / (1.0 + ratio);
  const double y2 = 1.0 - idle2, y1 = total - y2;
  const Plan plan = solved(problem, 1e-9);
  BOOST_TEST(plan.load[0] == y1, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(plan.load[1] == y2, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(plan.price[0] == q2 / (idle2 * idle2), boost::test_tools::tolerance(1e-4));
}

// The far engine is used exactly when the near one's marginal latency exceeds its own by the distance.
BOOST_AUTO_TEST_CASE(distance_decides_until_load_does) {
  struct Row {
    const char* name;
    double demand, far_s;
    bool uses_far;
  };
  for (const Row& row : {Row{"idle, far", 1.0, 1.0, false}, Row{"loaded, far", 8.0, 1.0, true},
                         Row{"loaded, very far", 8.0, 60.0, false}}) {
    const Problem problem =
        Sketch().engine(20, 1, 0.95).engine(20, 1, 0.95).source(row.demand, 1000, {0, row.far_s}).take();
    const Plan plan = solved(problem, 1e-9);
    BOOST_TEST((plan.flow_per_s[1] > 1e-3) == row.uses_far, row.name);
    if (!row.uses_far) {
      // "would be used if this much nearer": w (q - price of the near one) + distance.
      const double near_price = 20.0 / std::pow(1.0 - 0.1 * row.demand, 2);
      const double want = row.far_s - 0.1 * (near_price - 20.0);
      BOOST_TEST(reduced_cost_s(problem, plan, SourceIndex(0), PairIndex(1)) <= row.far_s + 1e-6, row.name);
      BOOST_TEST(want > 0.0, row.name);
    }
  }
}

// Two clusters, each near one engine: nobody crosses, though the sums alone would allow it.
BOOST_AUTO_TEST_CASE(neighbours_keep_to_themselves) {
  const Problem problem = Sketch()
                              .engine(20, 1, 0.9)
                              .engine(20, 1, 0.9)
                              .source(5, 500, {0.0, 0.1})
                              .source(5, 500, {0.1, 0.0})
                              .take();
  const Plan plan = solved(problem, 1e-9);
  BOOST_TEST(plan.flow_per_s[0] == 5.0, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(plan.flow_per_s[3] == 5.0, boost::test_tools::tolerance(1e-4));
}

BOOST_AUTO_TEST_CASE(churn_holds_the_flow_until_it_pays_to_move) {
  Problem problem = Sketch().engine(20, 1, 0.9).engine(20, 1, 0.9).source(2, 500, {0.02, 0.0}).take();
  problem.reference_per_s = {2.0, 0.0};
  struct Row {
    const char* name;
    double churn;
    bool moves;
  };
  for (const Row& row : {Row{"free", 0.0, true}, Row{"dear", 50.0, false}}) {
    problem.churn_cost_s = row.churn;
    const Plan plan = solved(problem, 1e-9);
    BOOST_TEST((plan.flow_per_s[1] > 0.5) == row.moves, row.name);
    BOOST_TEST(plan.terms[static_cast<std::size_t>(ObjectiveTerm::churn)] ==
                   row.churn * std::max(0.0, 2.0 - plan.flow_per_s[0]),
               boost::test_tools::tolerance(1e-9));
  }
}
