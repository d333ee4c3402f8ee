// The hold plan: what is in force, with engines that may not serve any more taken out and their share moved to the rest.
#pragma once

#include <optional>
#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// Nothing if `in_force` was made under another policy or table than these facts, or lacks a cluster. A row that loses all
/// its engines is spread over what its class may use, by capacity. What the engines left cannot carry is refused, in the policy's order.
std::optional<std::vector<schema::RoutingSnapshot>> hold_plan(
    const std::vector<schema::RoutingSnapshot>& in_force, const Facts& facts, Duration period);

}  // namespace signalbox::global_optimizer
