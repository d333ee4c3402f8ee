#include <boost/test/unit_test.hpp>

#include "tests/actors/policy_keeper/machine/driver.hpp"

using namespace signalbox;
using namespace signalbox::policy_keeper;
using testing::driver;

BOOST_AUTO_TEST_CASE(a_broken_policy_changes_nothing_but_raises_an_alert) {
  tests::check_transcript("policy_keeper", driver());
}

BOOST_AUTO_TEST_CASE(a_keeper_over_a_broken_file_starts_from_what_it_kept) {
  tests::check_transcript("policy_keeper_kept", driver(testing::policy_text("3")));
}
