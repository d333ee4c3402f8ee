#include "actors/policy_keeper/role.hpp"

#include <fmt/format.h>

#include "actors/policy_keeper/machine/machine.hpp"
#include "cluster-config/load/load.hpp"
#include "cluster-config/policy/compile.hpp"

namespace signalbox::policy_keeper {

namespace {

/// A policy whose limits the fleet cannot keep does not come into force. One that does not compile is the machine's business.
Machine::Input read_policy(const std::string& file, const config::Config& config) {
  auto text = config::read_text_file(file, policy::max_policy_bytes);
  if (!text) return PolicyUnreadable{text.error().text()};
  if (const auto compiled = policy::compile_text(*text, file))
    if (const auto unmet = config::match_limits(config, *compiled); !unmet.empty())
      return PolicyUnreadable{fmt::format("{}: {}; {}", file, unmet.front().what, unmet.front().hint)};
  return PolicyText{*std::move(text)};
}

}  // namespace

Status start(kit::Process& process) {
  const std::string file = process.config().policy;
  const auto teller = process.host<Machine>(
      "policy-keeper",
      [&process, file] {
        return Machine({process.id(), file, process.state().read(Machine::kept_name)});
      },
      [&process, file](const ReadPolicy&, const kit::Teller<Machine>& tell) {
        tell(read_policy(file, process.config()));
      });
  process.on_reload([&process, teller, file] { teller(read_policy(file, process.config())); });
  return {};
}

}  // namespace signalbox::policy_keeper
