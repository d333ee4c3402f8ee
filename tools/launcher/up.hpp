// The command `signalbox up`, in the foreground or on its own.
#pragma once

#include "tools/cli/exit.hpp"
#include "tools/cli/fleet.hpp"

namespace signalbox::launcher {

struct UpOptions {
  cli::FleetOptions fleet;
  bool detach = false;
  bool free_ports = false;
  double wait_s = 60;
};

/// Runs until the fleet is stopped, or, detached, until it is ready.
cli::Exit up(UpOptions options);

}  // namespace signalbox::launcher
