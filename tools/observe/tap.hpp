// The live, decoded view of the bus.
#pragma once

#include <cstdint>
#include <string>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"
#include "tools/cli/fleet.hpp"
#include "tools/observe/filter.hpp"

namespace signalbox::observe {

struct TapOptions {
  cli::FleetOptions fleet;
  Filter filter;
  bool json = false;
  bool drops = false;      ///< tell on stderr what was refused, and why
  std::uint64_t most = 0;  ///< messages; 0: no end
  double seconds = 0;      ///< 0: no end
  std::string record;      ///< a new file for everything heard, before it is checked
  std::string replay;      ///< a file instead of the bus
};

/// Prints until `most`, `seconds`, SIGINT or SIGTERM. Errors: unavailable if no forwarder was there.
Status tap(const TapOptions& options);

}  // namespace signalbox::observe
