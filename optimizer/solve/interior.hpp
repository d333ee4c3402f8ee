// A primal-dual interior-point method for problems with few rows.
//
// Every column x_k has a reduced cost s_k = cost_k + work_k p_e - level_row (+ r_k), every bounded one a slack t_k and its
// multiplier r_k, every engine a slack to its ceiling and that one's rent rho: Newton's method on the optimality conditions
// with x s = t r = slack rho = mu, for mu that falls to 0 (Mehrotra's predictor and corrector). Prices and engine loads are
// eliminated by hand, so a step factors one dense matrix of the size of the rows: ties, ceilings and refusals cost it
// nothing extra, but many rows do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// What a gap is measured against: the bound without what refusals cost. Those are dear, and within a thousandth of them the
/// flows that are served could lie anywhere.
double worth_of(const Problem& problem, double bound, std::span<const double> shed_per_s);

struct InteriorOptions {
  double target_gap = 1e-3;  ///< between its flows and the bound of its prices, relative to worth_of()
  std::uint32_t max_iterations = 60;
};

struct InteriorPoint {
  std::vector<double> price;       ///< by EngineIndex; infinite for engines without a ceiling
  std::vector<double> flow_per_s;  ///< by PairIndex; hardly any is exactly 0
  std::vector<double> shed_per_s;  ///< by SourceIndex
  double bound = 0;                ///< the exact dual value of `price`
  std::uint32_t iterations = 0;
};

InteriorPoint interior_point(const Problem& problem, const InteriorOptions& options);

}  // namespace signalbox::optimizer
