// How scenarios speak to this role.
#pragma once

#include "actors/policy_keeper/machine/machine.hpp"
#include "tests/support/scenario.hpp"

namespace signalbox::policy_keeper::testing {

inline std::string policy_text(const std::string& version) {
  return "policy laptop version " + version +
         "\nmodels { m }\nclass chat { tenants * model m criticality standard residency any }\notherwise "
         "reject 403\n";
}

inline tests::Driver<signalbox::policy_keeper::Machine> driver(std::string kept = {}) {
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

}  // namespace signalbox::policy_keeper::testing
