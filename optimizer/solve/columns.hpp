// The pairs that a solve works on: a growing subset of the problem's, by source.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// Pairs by source: row s owns [begin[s], begin[s + 1]). A view: either of the whole problem or of the
/// working columns.
struct ColumnView {
  std::span<const Pair> pairs;
  std::span<const std::uint32_t> begin;
  std::span<const double> reference_per_s;  ///< empty without churn
};

/// The working columns with their flows. Within a row ordered by engine.
struct Columns {
  std::vector<Pair> pairs;
  std::vector<std::uint32_t> origin;  ///< PairIndex of each
  std::vector<double> flow_per_s;
  std::vector<double> reference_per_s;
  std::vector<std::uint32_t> begin;

  ColumnView view(bool churn) const {
    return {pairs, begin, churn ? std::span<const double>(reference_per_s) : std::span<const double>()};
  }
  void clear() { pairs.clear(), origin.clear(), flow_per_s.clear(), reference_per_s.clear(), begin.clear(); }
  void add(const Problem& problem, std::uint32_t pair, double flow) {
    pairs.push_back(problem.pairs[pair]);
    origin.push_back(pair);
    flow_per_s.push_back(flow);
    reference_per_s.push_back(problem.reference_per_s.empty() ? 0.0 : problem.reference_per_s[pair]);
  }
};

}  // namespace signalbox::optimizer
