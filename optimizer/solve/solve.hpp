// Finds flows, prices and the certificate for one Problem.
//
// Two views of the same problem work on each other. The dual has one price per engine and is nearly flat at
// its top: Ceres' L-BFGS climbs a smoothed form of it. The primal is a convex separable flow: Gauss-Seidel
// sweeps shift each source's flow towards its cheapest engine by pairwise Newton steps, and price the
// ceilings by multipliers. Every set of prices gives a lower bound, so the bound of one view certifies the
// flows of the other. Deterministic; bounded by iterations.
#pragma once

#include "messages/base/result.hpp"
#include "optimizer/model/plan.hpp"
#include "optimizer/model/problem.hpp"
#include "optimizer/model/warm.hpp"

namespace signalbox::optimizer {

/// The best plan found within the limits: feasible (flows and ceilings within 1e-9 relative), with its honest
/// gap. Fails only on a problem that check() refuses.
Result<Plan> solve(const Problem& problem, const SolveOptions& options, const WarmState& warm);

}  // namespace signalbox::optimizer
