// A small image of the problem: sources that may use the same engines at about the same costs become one.
//
// A fleet's clusters lie in a few regions, so that most of what decides the engines' prices is seen by a few rows per model.
// The image's optimum is found at once and is where the search on the whole problem begins.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

struct Coarse {
  Problem problem;  ///< without churn
  std::vector<std::uint32_t>
      row_of;  ///< by SourceIndex of the whole problem; no_row without demand or engines
  static constexpr std::uint32_t no_row = UINT32_MAX;

  /// The image's flows and refusals, shared out to the whole problem's sources by demand.
  void share_out(const Problem& whole, const std::vector<double>& flow_per_s,
                 const std::vector<double>& shed_per_s, std::vector<double>& whole_flow_per_s,
                 std::vector<double>& whole_shed_per_s) const;
};

/// An image of at most about `rows` rows; more if there are more different sets of engines.
Coarse coarsen(const Problem& problem, std::size_t rows);

}  // namespace signalbox::optimizer
