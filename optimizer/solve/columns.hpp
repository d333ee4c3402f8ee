// The pairs that a solve works on: a growing subset of the problem's, by source.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// The working columns with their flows: row s owns [begin[s], begin[s + 1]), ordered by engine.
struct Columns {
  std::vector<Pair> pairs;
  std::vector<std::uint32_t> origin;  ///< PairIndex of each
  std::vector<double> flow_per_s;
  std::vector<double> reference_per_s;
  std::vector<std::uint32_t> begin;

  void clear() { pairs.clear(), origin.clear(), flow_per_s.clear(), reference_per_s.clear(), begin.clear(); }
  void add(const Problem& problem, std::uint32_t pair, double flow) {
    pairs.push_back(problem.pairs[pair]);
    origin.push_back(pair);
    flow_per_s.push_back(flow);
    reference_per_s.push_back(problem.reference_per_s.empty() ? 0.0 : problem.reference_per_s[pair]);
  }
};

}  // namespace signalbox::optimizer
