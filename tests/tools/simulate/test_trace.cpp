// Routing rules on a production trace: who serves it soonest. More seeds, and what else was measured: docs/measured/routing-mooncake.md.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <tuple>

#include "tests/support/files.hpp"
#include "tests/support/sizes.hpp"
#include "tools/simulate/scenario_file.hpp"
#include "tools/simulate/world/world.hpp"

using namespace signalbox;
using namespace signalbox::simulate;

namespace {

/// Mean time from a request's arrival to its end, in seconds.
struct Served {
  double e2e_s = 0;
  bool whole = false;  ///< the trace, not only its beginning
};

struct Trace {
  Scenario scenario;
  bool whole = false;
};

/// Read once: that takes as long as half a run.
Trace read_trace() {
  auto scenario = read_scenario(tests::source_path("tests/scenarios/mooncake.toml").string());
  BOOST_REQUIRE_MESSAGE(scenario.has_value(), (scenario ? "" : scenario.error().text()));
  auto& requests = scenario->loads.at(0).trace;
  const std::size_t all = requests.size(), size = tests::size_of_test("rules_on_a_production_trace");
  requests.resize(std::min(all, size));
  return {*std::move(scenario), size >= all};
}

/// `routers` replay the trace, or its beginning, at this utilisation.
Served serve(RoutingRule rule, std::size_t routers, double utilisation) {
  static const Trace trace = read_trace();
  Scenario scenario = trace.scenario;
  scenario.rule = rule;
  use_routers(scenario, routers);
  use_pace(scenario, utilisation);
  World world(scenario);
  const Report report = world.run();
  const PhaseLoad& load = report.phases.back().loads.at(0);
  BOOST_TEST(load.served == load.offered);
  BOOST_TEST_MESSAGE(name_of(rule) << ", " << routers << " routers, " << utilisation << ": E2E "
                                   << load.e2e_s.mean << " s, TTFT " << load.ttft_s.mean << " s, of "
                                   << load.served);
  return {load.e2e_s.mean, trace.whole};
}

/// Runs each only once for all tests.
const Served& served(RoutingRule rule, std::size_t routers, double utilisation) {
  static std::map<std::tuple<RoutingRule, std::size_t, double>, Served> known;
  const std::tuple key(rule, routers, utilisation);
  if (!known.contains(key)) known.emplace(key, serve(rule, routers, utilisation));
  return known.at(key);
}

/// By how much runs differ for chance near saturation; at 70 % it is a tenth of that.
constexpr double chance_at_85 = 0.05;

}  // namespace

BOOST_AUTO_TEST_CASE(the_rule_serves_a_production_trace_sooner_than_every_other) {
  const Served& own = served(RoutingRule::signalbox, 1, 0.7);
  for (std::size_t r = 0; r < enum_size<RoutingRule>; ++r) {
    const auto rule = static_cast<RoutingRule>(r);
    const bool close = rule == RoutingRule::llmd || rule == RoutingRule::sglang;  // the others are far behind
    if (rule != RoutingRule::signalbox && (own.whole || close))
      BOOST_TEST(own.e2e_s < served(rule, 1, 0.7).e2e_s, name_of(rule));
  }
}

BOOST_AUTO_TEST_CASE(near_saturation_it_is_not_behind_the_best_and_far_ahead_of_the_others) {
  const Served& own = served(RoutingRule::signalbox, 1, 0.85);
  const double chance = own.whole ? 0 : chance_at_85;
  for (const RoutingRule rule : {RoutingRule::llmd, RoutingRule::sglang})
    BOOST_TEST(own.e2e_s < (1 + chance) * served(rule, 1, 0.85).e2e_s, name_of(rule));
  BOOST_TEST(1.3 * own.e2e_s < served(RoutingRule::dynamo_4, 1, 0.85).e2e_s);
  BOOST_TEST(2 * own.e2e_s < served(RoutingRule::least_request, 1, 0.85).e2e_s);
}

BOOST_AUTO_TEST_CASE(eight_routers_that_share_what_they_know_serve_it_nearly_as_soon_as_one) {
  const Served &one = served(RoutingRule::signalbox, 1, 0.85),
               &eight = served(RoutingRule::signalbox, 8, 0.85);
  BOOST_TEST(eight.e2e_s < 1.05 * one.e2e_s);
}
