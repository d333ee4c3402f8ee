// What one solve hands to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/plan.hpp"
#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// Where to start. Empty vectors, or vectors of another fleet's size, mean a cold start.
struct WarmState {
  std::vector<double> price;  ///< by EngineIndex
  std::vector<double>
      flow_per_s;  ///< by PairIndex, any scale per source: only the shares and the shed part count
  std::vector<double> shed_per_s;  ///< by SourceIndex
};

/// Limits of one solve, in iterations so that a solve repeats bit for bit.
struct SolveOptions {
  double target_gap = 1e-3;            ///< certified relative gap at which to stop
  std::uint32_t max_rounds = 16;       ///< rounds of prices, bound and primal sweeps
  std::uint32_t sweeps_per_round = 1;  ///< passes over the flows between two looks at the gap
  std::uint32_t dual_iterations = 8;   ///< Newton steps of a round
};

/// The last plan's rates on the new problem's pairs, matched by (cluster, class, engine) and scaled to the
/// new demand. What the last plan sent to engines that have no pair any more, or no ceiling, is left out.
/// Serves as Problem::reference_per_s and as a warm start.
std::vector<double> carried_flows(const Problem& before, const Plan& plan, const Problem& now);
/// The last plan's refused rates, matched and scaled alike.
std::vector<double> carried_shed(const Problem& before, const Plan& plan, const Problem& now);

}  // namespace signalbox::optimizer
