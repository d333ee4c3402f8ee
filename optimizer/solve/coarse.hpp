// A small image of the problem: sources that may use the same engines at about the same costs become one.
//
// A fleet's clusters lie in a few regions, so that most of what decides the engines' prices is seen by a few rows per model.
// The image's optimum is found at once and is where the search on the whole problem begins.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

inline constexpr std::uint32_t no_group = UINT32_MAX;

/// Groups of sources that may use the same engines at about the same costs: at most about `count`, more if there are
/// more different sets of engines. By SourceIndex; no_group without demand or engines.
std::vector<std::uint32_t> group_sources(const Problem& problem, std::size_t count);

struct Coarse {
  Problem problem;                    ///< without churn
  std::vector<std::uint32_t> row_of;  ///< by SourceIndex of the whole problem: its group

  /// The image's flows and refusals, shared out to the whole problem's sources by demand.
  void share_out(const Problem& whole, const std::vector<double>& flow_per_s,
                 const std::vector<double>& shed_per_s, std::vector<double>& whole_flow_per_s,
                 std::vector<double>& whole_shed_per_s) const;
};

/// One row for each of these groups.
Coarse coarsen(const Problem& problem, std::vector<std::uint32_t> groups);

}  // namespace signalbox::optimizer
