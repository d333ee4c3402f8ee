// From a plan to what is published: one snapshot per cluster.
#pragma once

#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// All clusters' snapshots of `plan`, without version, cause and as_of_age. Weights under `cut`, up to 1 % of a row, are given to the rest
/// of it where that has room. What the policy's weight caps then put on engines above their ceilings is refused. A class without demand gets weights by free capacity, so that its first request finds a plan.
std::vector<schema::RoutingSnapshot> snapshots_of(const Facts& facts, const optimizer::BuiltProblem& built,
                                                  const optimizer::Plan& plan, Duration period);

/// The solver's plan as the policy's limits on whole rows would have it published; itself if there are none.
optimizer::Plan within_limits(const Facts& facts, const optimizer::BuiltProblem& built,
                              const optimizer::Plan& plan);

/// A weight below this share is not worth a connection.
inline constexpr double cut = 0.002;

}  // namespace signalbox::global_optimizer
