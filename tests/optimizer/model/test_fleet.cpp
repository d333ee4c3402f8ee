#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "optimizer/model/fleet.hpp"
#include "optimizer/model/warm.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;

namespace {

/// Two clusters with one class, three engines; each cluster may use all.
FleetState small_fleet() {
  FleetState fleet;
  for (int e = 0; e < 3; ++e) fleet.engines.push_back({{0.01, 0.0002, 1e-8, 3e-5, 1.0}, 1e6, 256, 1.0});
  for (std::size_t c = 0; c < 2; ++c)
    fleet.traffic.push_back({ClusterIndex(c), ClassIndex(0), 5.0, {300, 150, 800}, 100.0, 0.0, 0.0});
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t e = 0; e < 3; ++e)
      fleet.routes.push_back({SourceIndex(s), EngineIndex(e), 0.01 * double(e + 1), 0.0, 0.0, 0.0});
  return fleet;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_empty_engine_costs_exactly_the_unloaded_latency_for_every_class) {
  FleetState fleet = small_fleet();
  fleet.traffic[1].service_class = ClassIndex(1);
  fleet.traffic[1].shape = {3000, 20, 3010};
  const auto built = build_problem(fleet);
  BOOST_REQUIRE(built.has_value());
  for (std::size_t i = 0; i < built->problem.pairs.size(); ++i) {
    const Pair& pair = built->problem.pairs[i];
    const auto& shape = fleet.traffic[i / 3].shape;
    const double empty =
        pair.cost_s + pair.work_s * built->problem.engines[pair.engine.at()].curve.marginal(0.0);
    const double want = fleet.routes[i].network_s + unloaded_latency_s(fleet.engines[0].step, shape, {});
    BOOST_TEST(empty == want, boost::test_tools::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(what_binds_sets_the_ceiling) {
  struct Row {
    const char* name;
    double kv_tokens, max_batch, availability, at_most;
  };
  for (const Row& row :
       {Row{"headroom", 0, 0, 1.0, 0.85}, Row{"degraded", 0, 0, 0.5, 0.425}, Row{"gone", 0, 0, 0.0, 0.0},
        Row{"kv", 800 * 4, 0, 1.0, 0.5}, Row{"batch", 0, 4, 1.0, 0.5}}) {
    FleetState fleet = small_fleet();
    fleet.engines[0].kv_tokens = row.kv_tokens;
    fleet.engines[0].max_batch = row.max_batch;
    fleet.engines[0].availability = row.availability;
    const auto built = build_problem(fleet);
    BOOST_REQUIRE_MESSAGE(built.has_value(), row.name);
    const double ceiling = built->problem.engines[0].curve.ceiling;
    BOOST_TEST(ceiling <= row.at_most + 1e-12, row.name);
    if (row.availability == 0.0)
      for (const Pair& pair : built->problem.pairs)
        BOOST_TEST(pair.engine.value != 0u, "no pair to an engine that is gone");
  }
}

BOOST_AUTO_TEST_CASE(bad_numbers_are_refused_with_their_row) {
  FleetState fleet = small_fleet();
  fleet.engines[1].step.slowness = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(build_problem(fleet).error().text().find("engines[1]") != std::string::npos);
  fleet = small_fleet();
  fleet.routes[2].engine = EngineIndex(7);
  BOOST_TEST(build_problem(fleet).error().text().find("routes[2]") != std::string::npos);
  fleet = small_fleet();
  std::swap(fleet.routes[0], fleet.routes[1]);
  BOOST_TEST(!build_problem(fleet).has_value());
  fleet = small_fleet();
  fleet.traffic[1].demand_per_s = std::numeric_limits<double>::infinity();
  BOOST_TEST(build_problem(fleet).error().text().find("sources[1]") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(flows_are_carried_by_name_scaled_to_demand_and_not_to_the_gone) {
  FleetState before = small_fleet(), now = small_fleet();
  now.traffic[0].demand_per_s = 10.0;
  now.engines[1].availability = 0.0;
  const auto a = build_problem(before), b = build_problem(now);
  BOOST_REQUIRE((a.has_value() && b.has_value()));
  Plan plan;
  plan.flow_per_s = {1, 2, 2, 5, 0, 0};
  plan.shed_per_s = {0, 0};
  const auto flows = carried_flows(a->problem, plan, b->problem);
  const std::vector<double> want{2, 4, 5, 0};
  BOOST_TEST(flows == want, boost::test_tools::per_element());
}
