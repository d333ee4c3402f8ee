// A forwarder as a process: what run_role() is for the other roles.
#pragma once

#include "tools/cli/fleet.hpp"

namespace signalbox::run {

/// Runs the bus of this id until SIGTERM or SIGINT. Errors: not_found for an id that is no bus of the fleet; what keeps
/// it from starting.
Status run_forwarder(const cli::Fleet& fleet, const ProcessName& id);

}  // namespace signalbox::run
