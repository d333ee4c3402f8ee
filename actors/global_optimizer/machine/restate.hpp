// The plan as it is published: what limits of the policy, small weights and refusals have made of the solver's flows.
#pragma once

#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"
#include "optimizer/model/plan.hpp"

namespace signalbox::global_optimizer {

/// `solved` with the flows of the snapshots (all clusters, in the table's order). Its certificate is theirs: the objective of these flows
/// beside the solver's bound, which is one for them too, since the policy's limits only forbid.
optimizer::Plan published_plan(const std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
                               const optimizer::BuiltProblem& built, const optimizer::Plan& solved);

/// Writes that into the snapshots: loads, costs, certificate, and what limits cost.
void restate(std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
             const optimizer::BuiltProblem& built, const optimizer::Plan& solved);

}  // namespace signalbox::global_optimizer
