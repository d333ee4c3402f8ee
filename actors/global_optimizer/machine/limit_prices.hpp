// What the policy's limits on rows cost where they bind: one request more that a limit would let go where it is cheapest.
//
// Such limits are held on the solver's rows, not in the solve, so their multipliers are found at the published plan: with marginal costs
//
//     m_i = cost_i + work_i G'_e(y_e)        and the price of a full engine in place of G'
//
// a hundredth of a row is moved from the engine where it costs most to the one where it would cost least. If nothing but a limit forbids
// that, the limit binds, and its price is the difference of the two: the saving of the next request, in seconds of latency. It is
// of the first order, and of that row alone: the other rows stay where they are.
//
// Where nothing forbids it, the same move makes the plan better. Limits were held one after the other, each by the costs that the solver
// left; so rows that were moved for one are evened out once all are held, by Newton steps between two engines each.
#pragma once

#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"
#include "optimizer/model/plan.hpp"

namespace signalbox::global_optimizer {

/// Evens out the rows that limits have moved, within all limits of rows. All clusters, in the table's order.
void even_out(std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
              const optimizer::BuiltProblem& built, const optimizer::Plan& published);

/// Prices the limits of all rows, and adds those that bind although nothing had to be moved for them. `published`: the snapshots as a plan.
void price_limits(std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
                  const optimizer::BuiltProblem& built, const optimizer::Plan& published);

}  // namespace signalbox::global_optimizer
