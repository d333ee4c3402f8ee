// A small image of the problem: sources that may use the same engines at the same cost of refusal become one.
#pragma once

#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

Problem aggregate(const Problem& problem);

/// Prices at which the problem's rows are about balanced, by a few passes of block-coordinate descent as if
/// no engine had a ceiling. Infinite for engines that cannot be used. Meant for small problems.
std::vector<double> water_fill_prices(const Problem& problem, std::uint32_t sweeps);

}  // namespace signalbox::optimizer
