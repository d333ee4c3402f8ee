#include "optimizer/model/keep.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "messages/base/rng.hpp"
#include "optimizer/model/warm.hpp"
#include "optimizer/solve/solve.hpp"
#include "optimizer/synthetic/synthetic.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
namespace tt = boost::test_tools;

namespace {

constexpr double tolerance = 0.02;

/// Two equal engines and one more that only the second source may use.
Problem two_sources(double first_demand, double second_demand) {
  Problem p;
  for (int e = 0; e < 3; ++e) p.engines.push_back({{2.0, 1.0, 0.85}});
  p.sources.push_back({ClusterIndex(0), ClassIndex(0), first_demand, 100, 0, 0, 0, 2});
  p.sources.push_back({ClusterIndex(1), ClassIndex(0), second_demand, 100, 0, 0, 2, 1});
  p.pairs = {{EngineIndex(0), 0.1, 0.1}, {EngineIndex(1), 0.1, 0.1}, {EngineIndex(2), 0.1, 0.1}};
  return p;
}

Plan solved(const Problem& problem) {
  auto plan = solve(problem, {.target_gap = 1e-5}, {});
  BOOST_REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : plan.error().text()));
  return *std::move(plan);
}

double latency(const Plan& plan) { return plan.terms[0] + plan.terms[1]; }

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_nearly_as_good_is_kept_and_what_is_not_is_replaced) {
  struct Row {
    const char* name;
    double first, second;  ///< flows in force on the two engines; 10/s in all
    bool kept;
  };
  for (const Row& row : {Row{"the optimum itself", 5, 5, true}, Row{"a little off", 5.3, 4.7, true},
                         Row{"far off", 7, 3, false}, Row{"over the ceiling", 8.9, 1.1, false},
                         Row{"a part of it is on an engine that is gone", 5, 3, false},
                         Row{"nothing in force", 0, 0, false}}) {
    Problem p = two_sources(10, 2);
    p.reference_per_s = {row.first, row.second, 2};
    const Plan fresh = solved(p);
    const KeptPlan out = keep_in_force(p, fresh, tolerance);
    BOOST_TEST(out.kept[0] == row.kept, row.name);
    BOOST_TEST(out.stands == row.kept, row.name);
    BOOST_TEST(out.plan.flow_per_s[0] == (row.kept ? row.first : fresh.flow_per_s[0]), tt::tolerance(1e-9));
    BOOST_TEST(out.plan.load[0] == 0.1 * out.plan.flow_per_s[0], tt::tolerance(1e-9));
    BOOST_TEST(out.kept[1], row.name << ": the other source has nothing to do with it");
  }
}

BOOST_AUTO_TEST_CASE(no_tolerance_keeps_nothing) {
  Problem p = two_sources(10, 2);
  p.reference_per_s = {5, 5, 2};
  const auto kept = keep_in_force(p, solved(p), 0).kept;
  BOOST_TEST(std::count(kept.begin(), kept.end(), true) == 0);
}

BOOST_AUTO_TEST_CASE(shares_are_kept_of_what_is_admitted) {
  Problem p = two_sources(40, 2);  // twice what the two engines can do
  p.reference_per_s = {20, 20, 2};
  const Plan fresh = solved(p);
  BOOST_TEST(fresh.shed_per_s[0] > 20);
  const KeptPlan out = keep_in_force(p, fresh, tolerance);
  BOOST_TEST(out.plan.shed_per_s[0] == fresh.shed_per_s[0]);
  BOOST_TEST(out.plan.flow_per_s[0] + out.plan.flow_per_s[1] + fresh.shed_per_s[0] == 40,
             tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(in_a_fleet_noise_moves_little_and_the_price_of_keeping_is_bounded) {
  int all_kept = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    FleetState fleet = synthetic_fleet({.clusters = 10, .engines = 100, .models = 5, .seed = seed});
    fleet.objective.churn_cost_s = 0;
    const Problem before = build_problem(fleet).value().problem;
    const Plan first = solve(before, {}, {}).value();
    Rng rng(seed);
    perturb_demand(fleet, 0.02, rng);
    Problem now = build_problem(fleet).value().problem;
    now.reference_per_s = carried_flows(before, first, now);
    const Plan fresh = solve(now, {}, {first.price, now.reference_per_s, {}}).value();
    const KeptPlan out = keep_in_force(now, fresh, tolerance);
    const auto kept = std::count(out.kept.begin(), out.kept.end(), true);
    BOOST_TEST_MESSAGE(kept << " of " << now.sources.size() << " kept, latency " << latency(out.plan)
                            << " for " << latency(fresh));
    all_kept += kept == 50;
    BOOST_TEST(latency(out.plan) < (1 + tolerance) * latency(fresh));
    BOOST_TEST(out.plan.certificate.objective >= out.plan.certificate.lower_bound);
    for (std::size_t e = 0; e < now.engines.size(); ++e)
      BOOST_TEST(out.plan.load[e] <= now.engines[e].curve.ceiling + 1e-9);
  }
  BOOST_TEST(all_kept >= 3);  // in the others an engine was at its ceiling
}

BOOST_AUTO_TEST_CASE(one_slow_engine_in_a_large_fleet_is_left_at_once_and_the_rest_stays) {
  FleetState fleet = synthetic_fleet({.clusters = 10, .engines = 100, .models = 5, .seed = 3});
  const Problem before = build_problem(fleet).value().problem;
  const Plan first = solve(before, {}, {}).value();
  const auto busiest =
      static_cast<std::size_t>(std::max_element(first.load.begin(), first.load.end()) - first.load.begin());
  fleet.engines[busiest].step.slowness *= 3;
  Problem now = build_problem(fleet).value().problem;
  now.reference_per_s = carried_flows(before, first, now);
  const Plan fresh = solve(now, {}, {first.price, now.reference_per_s, {}}).value();
  const KeptPlan out = keep_in_force(now, fresh, tolerance);
  const auto requests = [&](const std::vector<double>& flow) {
    double sum = 0;
    for (std::size_t i = 0; i < now.pairs.size(); ++i)
      if (now.pairs[i].engine.at() == busiest) sum += flow[i];
    return sum;
  };
  BOOST_TEST(requests(out.plan.flow_per_s) < 0.5 * requests(first.flow_per_s));
  BOOST_TEST_MESSAGE(std::count(out.kept.begin(), out.kept.end(), true)
                     << " of " << now.sources.size() << " kept");
  BOOST_TEST(std::count(out.kept.begin(), out.kept.end(), true) > 0);
}
