// A tool's place on the bus: it listens, and may give signed orders.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "messages/bus/node.hpp"
#include "tools/cli/fleet.hpp"
#include "tools/fleet_view/view.hpp"

namespace signalbox::cli {

/// The time on the line of all instants of this process.
Instant monotonic_now();
/// Since 1970, for display.
Duration wall_now();

/// Joins the fleet's bus as this tool. Errors: denied or not_found for keys, invalid for endpoints.
Result<std::unique_ptr<bus::Node>> join_bus(const Fleet& fleet, std::string_view id,
                                            std::vector<std::string> subscriptions,
                                            bus::NodeHandlers handlers);

/// Why nothing can be heard: which forwarders were tried, and what to do.
Error nobody_there(const Fleet& fleet);

/// Listens until `enough` says so, or until `longest` has passed. Errors: as join_bus(), and unavailable if no
/// forwarder was there.
Result<fleet_view::FleetView> observe(const Fleet& fleet, std::vector<std::string> subscriptions,
                                      Duration longest,
                                      const std::function<bool(const fleet_view::FleetView&)>& enough);

}  // namespace signalbox::cli
