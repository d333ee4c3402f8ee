// Finds flows, prices and the certificate for one Problem.
//
// Two views of the same problem work on each other. The dual has one price per engine: each round moves the prices, by Newton's
// method, to where rows that stay near their last flows send what the engines offer (proximal.hpp, newton.hpp). The primal is a
// convex separable flow: sweeps balance each source exactly against the others, and repair makes the flows keep every ceiling.
// Every set of prices gives a lower bound, so the bound of one view certifies the flows of the other. A cold start comes from a
// small image of the problem (coarse.hpp), and small problems are solved as a whole by an interior-point method (interior.hpp).
// Deterministic; bounded by iterations.
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
