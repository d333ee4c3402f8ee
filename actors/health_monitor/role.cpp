#include "actors/health_monitor/role.hpp"

#include "actors/health_monitor/machine/machine.hpp"

namespace signalbox::health_monitor {

Status start(kit::Process& process) {
  process.host<Machine>(
      "health-monitor",
      [&process] {
        return Machine({process.id(), kit::fleet_table(process.config()), 1s, 200ms});
      },
      [](const kit::None&, const kit::Teller<Machine>&) {});
  return {};
}

}  // namespace signalbox::health_monitor
