#include "optimizer/solve/metric.hpp"

#include <algorithm>

namespace signalbox::optimizer {
namespace {

/// Of each row, the couplings among this many of its largest flows are kept,
constexpr std::size_t strongest = 10;
/// and of those the ones above this share of the row's whole.
constexpr double weakest = 1e-4;

}  // namespace

bool Metric::build(const Problem& problem, SmoothDual& smooth, const ColumnView& columns,
                   const std::vector<std::uint32_t>& engines, const std::vector<double>& price) {
  std::vector<int> place(problem.engines.size(), -1);
  for (std::size_t i = 0; i < engines.size(); ++i) place[engines[i]] = static_cast<int>(i);
  std::vector<Eigen::Triplet<double>> entries;
  std::vector<double> work(problem.engines.size(), 0.0), diagonal(engines.size(), 0.0);
  std::vector<SmoothDual::Near> top;
  smooth.evaluate(price, work, [&](std::size_t s, const SmoothDual::Row& row) {
    const double inverse_t = 1.0 / smooth.temperature_s(s);
    const double whole = row.through_per_s + row.shed_per_s;
    for (const auto& near : row.near) {
      const Pair& pair = columns.pairs[near.column];
      diagonal[place[pair.engine.at()]] +=
          pair.work_s * pair.work_s * near.flow_per_s * (1.0 - near.flow_per_s / whole) * inverse_t;
    }
    top.assign(row.near.begin(), row.near.end());
    if (top.size() > strongest) {
      std::nth_element(top.begin(), top.begin() + strongest, top.end(),
                       [](const auto& a, const auto& b) { return a.flow_per_s > b.flow_per_s; });
      top.resize(strongest);
    }
    for (std::size_t i = 0; i < top.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (top[i].flow_per_s * top[j].flow_per_s < weakest * whole * whole) continue;
        const Pair& a = columns.pairs[top[i].column];
        const Pair& b = columns.pairs[top[j].column];
        const int row_a = place[a.engine.at()], row_b = place[b.engine.at()];
        const double value = -a.work_s * b.work_s * top[i].flow_per_s * top[j].flow_per_s / whole * inverse_t;
        entries.emplace_back(std::max(row_a, row_b), std::min(row_a, row_b), value);
      }
  });
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const CongestionCurve& curve = problem.engines[engines[i]].curve;
    const double load = curve.load_at(price[engines[i]]);
    const bool bends = load > 0.0 && load < curve.ceiling;
    const double own = 1.0 / curve.curvature(load);
    diagonal[i] = diagonal[i] * (1.0 + 1e-9) + (bends ? own : 0.1 * own);
    entries.emplace_back(static_cast<int>(i), static_cast<int>(i), diagonal[i]);
  }
  Eigen::SparseMatrix<double> hessian(static_cast<int>(engines.size()), static_cast<int>(engines.size()));
  hessian.setFromTriplets(entries.begin(), entries.end());
  factor_.compute(hessian);
  return factor_.info() == Eigen::Success;
}

void Metric::to_price(const double* z, Eigen::VectorXd& step) const {
  step = Eigen::Map<const Eigen::VectorXd>(z, factor_.rows());
  factor_.matrixU().solveInPlace(step);
  step = factor_.permutationPinv() * step;
}

void Metric::to_gradient(const Eigen::VectorXd& by_price, double* by_z) const {
  Eigen::Map<Eigen::VectorXd> out(by_z, factor_.rows());
  out = factor_.permutationP() * by_price;
  factor_.matrixL().solveInPlace(out);
}

}  // namespace signalbox::optimizer
