// The policy's `capacity`, while it is in force: is there room for so many times what is planned for?
#pragma once

#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// Says in the plan (all clusters, in the table's order) which classes the engines in service have too little room for, beside what they
/// carry of others. Alters no weight.
void check_reserves(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts);

}  // namespace signalbox::global_optimizer
