// What must be so before a fleet is started on this machine.
#pragma once

#include "actors/cluster_router/net/stream.hpp"
#include "messages/base/result.hpp"
#include "tools/cli/fleet.hpp"

namespace signalbox::launcher {

/// A block of ports, kept from other launchers as long as the descriptor is open.
struct PortBlock {
  std::uint16_t base = 0;
  net::Fd guard;
};

/// Takes the block at `base`. Errors: conflict if another fleet has it.
Result<PortBlock> take_ports(std::uint16_t base);
/// Takes any block that neither a fleet nor another program has a port of. Errors: conflict if there is none.
Result<PortBlock> take_any_ports();

/// Makes the state folder, refuses to be the second launcher in it, and ends what a dead one may have left. Errors:
/// conflict, io.
Status take_state_folder(const cli::Fleet& fleet);

/// Makes the fleet's keys where the configuration wants keys and there are none. True if it made some.
Result<bool> make_missing_keys(const cli::Fleet& fleet);

/// Every process of the configuration finds its keys. Errors: of the first that does not, with what to do.
Status check_keys(const cli::Fleet& fleet);

/// Kills, with their groups, those of these processes that still run; returns how many.
std::size_t end_leftovers(const std::string& state_dir);

}  // namespace signalbox::launcher
