#include "optimizer/solve/dual.hpp"

#include <ceres/ceres.h>

#include <cmath>

#include "optimizer/solve/metric.hpp"
#include "optimizer/solve/smooth_dual.hpp"

namespace signalbox::optimizer {
namespace {

/// What Ceres sees: minus the smoothed dual, in the metric's coordinates, in units of `unit`.
class Descent final : public ceres::FirstOrderFunction {
 public:
  Descent(const Problem& problem, SmoothDual& smooth, const Metric& metric,
          const std::vector<std::uint32_t>& engines, const std::vector<double>& origin)
      : problem_(problem),
        smooth_(smooth),
        metric_(metric),
        engines_(engines),
        origin_(origin),
        price_(origin),
        work_(origin.size()),
        step_(engines.size()) {}

  bool Evaluate(const double* z, double* cost, double* gradient) const override {
    price_at(z);
    std::fill(work_.begin(), work_.end(), 0.0);
    double value = smooth_.evaluate(price_, work_, [](std::size_t, const SmoothDual::Row&) {});
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      const std::uint32_t e = engines_[i];
      const CongestionCurve& curve = problem_.engines[e].curve;
      const double load = curve.load_at(price_[e]);
      if (load > 0.0) value -= price_[e] * load - curve.cost(load);
      step_[static_cast<int>(i)] = -(work_[e] - load);
    }
    if (gradient) metric_.to_gradient(step_, gradient);
    *cost = -value;
    return std::isfinite(*cost);
  }
  int NumParameters() const override { return static_cast<int>(engines_.size()); }

  const std::vector<double>& price_at(const double* z) const {
    metric_.to_price(z, step_);
    for (std::size_t i = 0; i < engines_.size(); ++i)
      price_[engines_[i]] = origin_[engines_[i]] + step_[static_cast<int>(i)];
    return price_;
  }

 private:
  const Problem& problem_;
  SmoothDual& smooth_;
  const Metric& metric_;
  const std::vector<std::uint32_t>& engines_;
  const std::vector<double>& origin_;
  mutable std::vector<double> price_, work_;
  mutable Eigen::VectorXd step_;
};

ceres::GradientProblemSolver::Options solver_options(std::uint32_t iterations) {
  ceres::GradientProblemSolver::Options options;
  options.line_search_direction_type = ceres::LBFGS;
  options.max_lbfgs_rank = 12;
  options.use_approximate_eigenvalue_bfgs_scaling = false;  // the metric is the scaling
  options.max_num_iterations = static_cast<int>(iterations);
  options.max_num_line_search_step_size_iterations = 10;
  options.max_num_line_search_direction_restarts = 1;
  options.function_tolerance = 1e-6;
  options.gradient_tolerance = 1e-14;
  options.parameter_tolerance = 1e-14;
  options.logging_type = ceres::SILENT;
  return options;
}

}  // namespace

Climb climb_dual(const Problem& problem, const ColumnView& columns, const std::vector<double>& temperature_s,
                 std::uint32_t iterations, std::vector<double>& price) {
  std::vector<std::uint32_t> engines;
  for (std::size_t e = 0; e < problem.engines.size(); ++e)
    if (problem.engines[e].curve.ceiling > 0.0) engines.push_back(static_cast<std::uint32_t>(e));
  SmoothDual smooth(problem, columns, temperature_s);
  Metric metric;
  if (engines.empty() || !metric.build(problem, smooth, columns, engines, price)) return {};
  auto* descent = new Descent(problem, smooth, metric, engines, price);
  const ceres::GradientProblem gradient(descent);  // owns descent
  std::vector<double> z(engines.size(), 0.0);
  ceres::GradientProblemSolver::Summary summary;
  ceres::Solve(solver_options(iterations), gradient, z.data(), &summary);
  const std::vector<double>& better = descent->price_at(z.data());
  for (const std::uint32_t e : engines)
    if (!std::isfinite(better[e])) return {};
  price = better;
  const double gain =
      (summary.initial_cost - summary.final_cost) / std::max(std::abs(summary.final_cost), 1e-12);
  return {static_cast<std::uint32_t>(summary.iterations.size()), gain};
}

SoftFlows softmin_flows(const Problem& problem, const ColumnView& columns,
                        const std::vector<double>& temperature_s, const std::vector<double>& price) {
  SoftFlows flows{std::vector<double>(columns.pairs.size(), 0.0),
                  std::vector<double>(problem.sources.size(), 0.0)};
  SmoothDual smooth(problem, columns, temperature_s);
  std::vector<double> work(problem.engines.size(), 0.0);
  smooth.evaluate(price, work, [&](std::size_t s, const SmoothDual::Row& row) {
    for (const auto& near : row.near) flows.flow_per_s[near.column] += near.flow_per_s;
    for (const auto& near : row.stayed) flows.flow_per_s[near.column] += near.flow_per_s;
    flows.shed_per_s[s] = row.shed_per_s;
  });
  return flows;
}

}  // namespace signalbox::optimizer
