// The state of the fleet now, as tables.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"
#include "tools/cli/fleet.hpp"

namespace signalbox::observe {

struct InspectOptions {
  cli::FleetOptions fleet;
  std::string what;
  std::string engine;   ///< of `weights`
  std::string cluster;  ///< of `snapshot`; empty: all
  bool json = false;
  double wait_s = 3;
};

/// What can be inspected: a name and a sentence each.
struct Subject {
  std::string_view name;
  std::string_view sentence;
};
std::span<const Subject> subjects();

/// Listens until everything that the subject needs was heard, at most `wait_s`, and prints it. Errors: unavailable if
/// nothing was heard, not_found for a name that the fleet does not know, conflict if the fleet has none of it.
Status inspect(const InspectOptions& options);

}  // namespace signalbox::observe
