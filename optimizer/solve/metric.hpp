// The metric in which the dual is climbed: the smoothed dual's own curvature where the climb begins.
#pragma once

#include <Eigen/SparseCholesky>
#include <vector>

#include "optimizer/model/problem.hpp"
#include "optimizer/solve/smooth_dual.hpp"

namespace signalbox::optimizer {

/// Network costs are small beside the cost of congestion, so the rows bind the prices of neighbouring engines
/// some thousand times more stiffly than the engines' own curves bind each price: with a diagonal scaling
/// L-BFGS needs hundreds of iterations. Prices are therefore written as p = p0 + (P' L^-T z), where L L' = P
/// H P' is the sparse Cholesky factor of (nearly) the Hessian H at p0: the first step is then Newton's, and
/// L-BFGS learns how the Hessian changes. Couplings that are weak are left out of H (its diagonal keeps them,
/// so H stays positive definite), which keeps L sparse.
class Metric {
 public:
  /// False if H could not be factorised.
  bool build(const Problem& problem, SmoothDual& smooth, const ColumnView& columns,
             const std::vector<std::uint32_t>& engines, const std::vector<double>& price);
  /// p - p0 for the engines, from z.
  void to_price(const double* z, Eigen::VectorXd& step) const;
  /// The gradient by z from the gradient by p.
  void to_gradient(const Eigen::VectorXd& by_price, double* by_z) const;

 private:
  Eigen::SimplicialLLT<Eigen::SparseMatrix<double>, Eigen::Lower, Eigen::AMDOrdering<int>> factor_;
};

}  // namespace signalbox::optimizer
