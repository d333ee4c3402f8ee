// The control plane in a world of faults: all role machines, a network that loses, repeats, delays, reorders and parts,
// processes that crash and pause, disks that fill, solvers that fail. What must never happen and what must happen in the
// end is in checker.hpp and liveness.cpp; that the checkers can tell is shown by the defects of planted.hpp.
#include <boost/test/unit_test.hpp>
#include <map>

#include "tests/support/sizes.hpp"
#include "tests/tools/simulate/control/planted.hpp"
#include "tests/tools/simulate/control/schedule.hpp"

using namespace signalbox;
using namespace signalbox::simulate;
using namespace signalbox::simulate::control;

namespace {

struct Ran {
  std::vector<Violation> violations;
  std::uint64_t trace = 0;
  std::uint64_t messages = 0, snapshots = 0;
};

Ran run(const Scenario& scenario, const Bug* bug = nullptr) {
  World world(scenario);
  Checker checker(scenario);
  checker.begin(world);
  std::unique_ptr<Planted> planted = bug ? bug->plant(checker) : std::make_unique<Planted>(checker);
  planted->begin(world);
  world.set_hooks(*planted);
  const Report report = world.run();
  return {checker.finish(), checker.trace(), report.messages, report.snapshots};
}

std::uint64_t first_seed() {
  const char* given = std::getenv("SIGNALBOX_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

}  // namespace

BOOST_AUTO_TEST_CASE(faults_break_no_promise_and_the_fleet_recovers) {
  const std::uint64_t seeds = tests::size_of_test("control_plane_under_faults"), first = first_seed();
  std::uint64_t messages = 0, snapshots = 0;
  std::map<HappeningKind, std::size_t> happened;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Scenario scenario = control_scenario(seed);
    const Ran result = run(scenario);
    messages += result.messages, snapshots += result.snapshots;
    for (const Happening& h : scenario.happenings) ++happened[h.kind];
    BOOST_TEST(result.violations.empty(), story_of(scenario) << text_of(result.violations));
  }
  BOOST_TEST_MESSAGE(seeds << " seeds, " << messages << " messages, " << snapshots << " snapshots");
  for (const auto& [kind, count] : happened) BOOST_TEST_MESSAGE(count << " " << name_of(kind));
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_trace) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Scenario scenario = control_scenario(seed);
    const std::uint64_t once = run(scenario).trace;
    BOOST_TEST(run(scenario).trace == once);
    BOOST_TEST(run(control_scenario(seed + 1)).trace != once);
  }
}

BOOST_AUTO_TEST_CASE(each_planted_defect_is_found) {
  const std::uint64_t seeds = tests::size_of_test("planted_defects");
  for (const Bug& bug : planted_bugs()) {
    std::uint64_t seed = bug.seed;
    Ran result = run(control_scenario(seed), &bug);
    for (std::uint64_t next = 1; next <= seeds && result.violations.empty(); ++next)
      result = run(control_scenario(seed = next), &bug);
    BOOST_TEST(!result.violations.empty(), bug.name << " is not found: " << bug.what);
    if (!result.violations.empty())
      BOOST_TEST_MESSAGE(bug.name << ": seed " << seed << "\n" << text_of(result.violations));
  }
}
