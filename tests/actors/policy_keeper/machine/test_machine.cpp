#include "actors/policy_keeper/machine/machine.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/scenario.hpp"

using namespace signalbox;
using namespace signalbox::policy_keeper;

namespace {

std::string policy_text(const std::string& version) {
  return "policy laptop version " + version +
         "\nmodels { m }\nclass chat { tenants * model m criticality standard residency any }\notherwise "
         "reject 403\n";
}

tests::Driver<Machine> driver(std::string kept = {}) {
  tests::Driver<Machine> out;
  out.make = [kept] { return Machine({ProcessName("keeper-1"), "fleet.policy", kept, 5s}); };
  out.input = [](const std::string& name, tests::Reader& in) -> Machine::Input {
    if (name == "unreadable") return PolicyUnreadable{in.rest()};
    if (name == "version") return PolicyText{policy_text(in.word())};
    return PolicyText{in.rest()};
  };
  out.show_command = [](const ReadPolicy&) { return std::string("read the policy file"); };
  out.show_view = [](const Machine& m) {
    return fmt::format("    ready={} state={} refused={}\n", m.view().standing.ready, m.view().standing.state,
                       m.view().refused);
  };
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_broken_policy_changes_nothing_but_raises_an_alert) {
  tests::check_transcript("policy_keeper", driver());
}

BOOST_AUTO_TEST_CASE(a_keeper_over_a_broken_file_starts_from_what_it_kept) {
  tests::check_transcript("policy_keeper_kept", driver(policy_text("3")));
}
