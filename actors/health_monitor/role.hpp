// The health-monitor's process: one machine, fed by the bus alone.
#pragma once

#include "actors/kit/process.hpp"

namespace signalbox::health_monitor {

Status start(kit::Process& process);

}  // namespace signalbox::health_monitor
