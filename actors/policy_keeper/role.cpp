#include "actors/policy_keeper/role.hpp"

#include "actors/policy_keeper/machine/machine.hpp"
#include "cluster-config/load/load.hpp"

namespace signalbox::policy_keeper {

namespace {

Machine::Input read_policy(const std::string& file) {
  auto text = config::read_text_file(file, policy::max_policy_bytes);
  if (!text) return PolicyUnreadable{text.error().text()};
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
      [file](const ReadPolicy&, const kit::Teller<Machine>& tell) { tell(read_policy(file)); });
  process.on_reload([teller, file] { teller(read_policy(file)); });
  return {};
}

}  // namespace signalbox::policy_keeper
