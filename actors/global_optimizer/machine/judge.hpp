// The verifier's judgement on what is about to be published, in the optimizer's own terms.
#pragma once

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// Refuses a plan that breaks the policy: with the first violations, and how many there are. `coverage` is the share of the engines that
/// are heard.
Status judge(const std::vector<schema::RoutingSnapshot>& plan, const Facts& facts, double coverage);

}  // namespace signalbox::global_optimizer
