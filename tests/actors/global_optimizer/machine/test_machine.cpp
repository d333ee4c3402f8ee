#include <boost/test/unit_test.hpp>

#include "tests/actors/global_optimizer/machine/driver.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using testing::driver;

BOOST_AUTO_TEST_CASE(a_leaders_life) { tests::check_transcript("global_optimizer", driver()); }

BOOST_AUTO_TEST_CASE(a_standby_learns_and_takes_over) {
  tests::check_transcript("global_optimizer_standby", driver("41\n"));
}

BOOST_AUTO_TEST_CASE(a_leader_that_cannot_keep_its_term_does_not_lead) {
  Machine machine = driver().make();
  Machine::Effects effects;
  machine.on_wake(instant_at(0s), effects);
  effects = {};
  machine.on_wake(instant_at(1s), effects);
  BOOST_REQUIRE(machine.view().standing.leads);
  BOOST_REQUIRE(effects.persist.size() == 1);
  BOOST_TEST(effects.persist[0].bytes == "1\n");
  Machine::Effects instead;
  machine.on_persist_failed(effects.persist[0], instant_at(1s), instead);
  BOOST_TEST(!machine.view().standing.leads);
  for (const auto& message : instead.publish) BOOST_TEST(std::holds_alternative<schema::Alert>(message));
}
