// Says an order on the bus and waits for what the processes make of it.
#pragma once

#include "messages/base/result.hpp"
#include "messages/schema/control.hpp"
#include "tools/cli/fleet.hpp"

namespace signalbox::order {

struct GiveOptions {
  schema::Order order;  ///< its id and operator are filled in
  double wait_s = 5;
};

/// Prints each receipt. Errors: not_found for an engine, cluster or process that the fleet does not have, unavailable if
/// nobody answers, conflict if nobody carried it out.
Status give(const cli::Fleet& fleet, GiveOptions options);

}  // namespace signalbox::order
