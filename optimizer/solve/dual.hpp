// The prices: L-BFGS on the dual with every minimum replaced by a softmin, in the metric of its own
// curvature.
#pragma once

#include <vector>

#include "optimizer/model/problem.hpp"
#include "optimizer/solve/columns.hpp"

namespace signalbox::optimizer {

struct Climb {
  std::uint32_t iterations = 0;
  double relative_gain = 0;  ///< of the smoothed dual value
};

/// Climbs from `price` and leaves the better prices there. Their worth is for the exact dual value to say.
/// `temperature_s` by source; columns that are missing in the view count as infinitely dear.
Climb climb_dual(const Problem& problem, const ColumnView& columns, const std::vector<double>& temperature_s,
                 std::uint32_t iterations, std::vector<double>& price);

/// What the softmin sends where: nearly balanced flows when the climb converged.
struct SoftFlows {
  std::vector<double> flow_per_s;  ///< by column of the view
  std::vector<double> shed_per_s;  ///< by source
};
SoftFlows softmin_flows(const Problem& problem, const ColumnView& columns,
                        const std::vector<double>& temperature_s, const std::vector<double>& price);

}  // namespace signalbox::optimizer
