#include <boost/test/unit_test.hpp>

#include "tests/support/files.hpp"
#include "tools/simulate/render.hpp"
#include "tools/simulate/scenario_file.hpp"
#include "tools/simulate/world/world.hpp"

using namespace signalbox;
using namespace signalbox::simulate;

namespace {

Report run(const char* file) {
  auto scenario = read_scenario(tests::source_path(file).string());
  BOOST_REQUIRE_MESSAGE(scenario.has_value(), (scenario ? "" : scenario.error().text()));
  World world(*scenario);
  Report report = world.run();
  BOOST_TEST_MESSAGE(as_text(report));
  return report;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_that_becomes_slow_loses_weight_and_nobody_is_refused) {
  const Report report = run("tests/scenarios/step.toml");
  const StepAnswer& slowed = report.answers.at(0).engines.at(0).answer;
  BOOST_TEST(slowed.final < 0.6 * slowed.before);
  for (const Phase& phase : report.phases)
    for (const PhaseLoad& load : phase.loads) {
      BOOST_TEST(load.refusals() == 0u);
      BOOST_TEST(load.failures() == 0u);
    }
}

BOOST_AUTO_TEST_CASE(at_twice_the_demand_only_sheddable_requests_are_refused) {
  const Report report = run("tests/scenarios/demand.toml");
  const auto& doubled = report.phases.at(1).loads;
  BOOST_TEST(doubled[0].refusals() == 0u);
  BOOST_TEST(doubled[1].refusals() == 0u);
  BOOST_TEST(doubled[2].refusals() > 1000u);
  BOOST_TEST(doubled[2].refusals() ==
             doubled[2].refused[static_cast<std::size_t>(schema::RefuseReason::shed_by_plan)]);
  for (const PhaseLoad& load : report.phases.at(0).loads) BOOST_TEST(load.refusals() == 0u);
}
