// Which engines hold which hot prefix group. A group is requests that begin with the same blocks: an engine that holds those computes them once
// and not for each request, in exchange for memory that could hold something else.
//
//   minimise  sum x[r,e] cost[r,e]  +  sum_e  G_e(base_e + sum_r x[r,e] work[r,e]) - G_e(base_e)  +  sum over held (g, e) of  tokens_g * hold_e
//   subject to  sum_e x[r,e] = rate_r,   sum over g held on e of tokens_g <= memory_e
//
// where cost and work of a row are those of a hit where its group is held, else of a miss, and base is what everybody else puts there. Holders
// are found by local search from those in force: add, drop, move, exchange, each judged by the flows' own optimum; flows by pairwise Newton
// steps. Where few choices are open this is the exhaustive optimum (tests/optimizer/model/test_place.cpp); no proof for many.
//
// Refused alternative: one more commodity for each group in the routing problem. Holding is a yes or no, which its convex method cannot
// decide, and each would need a row for every class and cluster in every period.
#pragma once

#include <cstdint>
#include <vector>

#include "messages/base/ids.hpp"
#include "optimizer/model/service_curve.hpp"

namespace signalbox::optimizer {

struct PlacementEngine {
  CongestionCurve curve;     ///< ceiling 0: takes nothing
  double base_load = 0;      ///< work of everything but the groups
  double memory_tokens = 0;  ///< that groups may hold there
  double hold_cost_s_per_token =
      0;  ///< seconds of latency per second that a token of its cache is worth elsewhere
};

/// Where a row may be served. Costs in seconds per request, without what load adds.
struct PlacementOption {
  EngineIndex engine;
  double hit_cost_s = 0, miss_cost_s = 0;
  double hit_work_s = 0, miss_work_s = 0;  ///< > 0
};

/// Requests of one group that enter in one place.
struct PlacementRow {
  std::uint32_t group = 0;
  double rate_per_s = 0;
  std::vector<PlacementOption> options;  ///< ascending by engine
};

struct PlacementProblem {
  std::vector<PlacementEngine> engines;  ///< by EngineIndex
  std::vector<double> group_tokens;      ///< by group
  std::vector<PlacementRow> rows;
};

struct Placement {
  std::vector<std::vector<EngineIndex>> holders;  ///< by group, ascending
  std::vector<std::vector<double>> flow_per_s;    ///< by row and option
  double objective = 0;
};

/// The best flows for these holders, which must fit the memory.
Placement flows_for(const PlacementProblem& problem, std::vector<std::vector<EngineIndex>> holders);
/// Holders and flows. `start`: the holders in force, by group; what does not fit is left out. A change is made only for a gain of more than
/// `least_gain` of the objective.
Placement place(const PlacementProblem& problem, const std::vector<std::vector<EngineIndex>>& start = {},
                double least_gain = 0);
/// The rate of the group, all its rows together, from which one more engine would hold it, all else being equal; 0: none would at up to 64 times
/// its rate.
double more_at_per_s(const PlacementProblem& problem, const Placement& placement, std::uint32_t group);

}  // namespace signalbox::optimizer
