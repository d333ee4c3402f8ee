// One solve: sources of demand, engines with convex costs, the pairs that may be used, and what the last plan
// did.
//
//   minimise   sum_i x_i cost_i  +  sum_e G_e(y_e)  +  sum_s shed_s(z_s)  +  churn * sum_i max(0, ref_i -
//   x_i),     y_e = sum_i work_i x_i subject to sum_{i of s} x_i + z_s = demand_s,   x, z >= 0,   y_e <=
//   ceiling_e
//
// and where shares are capped: sum_{i of s, engine_i in g} x_i <= cap * demand_s for each group g of engines.
//
// x_i: requests/s on pair i; z_s: requests/s shed. Shedding is always allowed, so that every instance is
// feasible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "messages/base/ids.hpp"
#include "optimizer/model/service_curve.hpp"

namespace signalbox::optimizer {

struct SourceTag {
  static constexpr std::string_view noun = "source";
};
struct PairTag {
  static constexpr std::string_view noun = "pair";
};
using SourceIndex = Index<SourceTag>;  ///< row of Problem::sources
using PairIndex = Index<PairTag>;      ///< row of Problem::pairs

/// Demand of one class in one cluster.
struct Source {
  ClusterIndex cluster;
  ClassIndex service_class;
  double demand_per_s = 0;  ///< offered first attempts, requests/s
  double shed_cost_s = 0;   ///< cost of refusing one request; must exceed any latency that is worth suffering
  double floor_fraction = 0;     ///< this share of the demand is refused only at floor_shed_cost_s
  double floor_shed_cost_s = 0;  ///< >= shed_cost_s; unused when floor_fraction is 0
  std::uint32_t first_pair = 0;  ///< its pairs are [first_pair, first_pair + pair_count), by ascending engine
  std::uint32_t pair_count = 0;
};

/// A source may use this engine. Forbidden engines have no pair: they are excluded by construction.
struct Pair {
  EngineIndex engine;
  double cost_s = 0;  ///< load-independent cost of one request here; may be negative (a cache value)
  double work_s = 0;  ///< engine-seconds of one request here; > 0
};

/// One engine. An engine with ceiling 0 (gone, draining) gets no flow.
struct EngineLoad {
  CongestionCurve curve;
};

/// No group of engines takes more than this share of a source's requests.
struct ShareCap {
  std::vector<std::uint32_t> group;  ///< by EngineIndex, numbered from 0
  double most = 1;                   ///< in (0, 1]
};

struct Problem {
  std::vector<Source> sources;      ///< ascending (cluster, class)
  std::vector<EngineLoad> engines;  ///< in the fleet table's order, so that EngineIndex is the row
  std::vector<Pair> pairs;
  /// Requests/s that the last plan sends on each pair, scaled to the new demand; empty: no last plan. Leave
  /// out (0) what comes from engines that are gone or draining: leaving them is not churn.
  std::vector<double> reference_per_s;
  double churn_cost_s = 0;  ///< cost of moving one request/s away from its reference
  /// From small groups to large ones: each one's groups lie in one of the next. A source whose caps have no room for all of its demand
  /// is not bound by them.
  std::vector<ShareCap> caps;

  std::span<const Pair> pairs_of(const Source& source) const {
    return std::span(pairs).subspan(source.first_pair, source.pair_count);
  }
};

/// Refuses what a solver cannot work on: non-finite or out-of-range numbers, unsorted or dangling pairs. Says
/// which row.
Status check(const Problem& problem);

}  // namespace signalbox::optimizer
