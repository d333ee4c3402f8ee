#include "optimizer/fit/fit.hpp"

#include <ceres/ceres.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace signalbox::optimizer {
namespace {

using Matrix = Eigen::Matrix<double, parameters, parameters>;
using Vector = Eigen::Matrix<double, parameters, 1>;

struct Named {
  const char* name;
  double value;
  bool may_be_zero;
};

template <std::size_t n>
Result<void> check(const Named (&values)[n], const std::string& where) {
  for (const Named& v : values)
    if (!std::isfinite(v.value) || v.value < 0 || (v.value == 0 && !v.may_be_zero))
      return tl::unexpected(
          Error{ErrorKind::invalid, fmt::format("{} is {}", v.name, v.value), where,
                v.may_be_zero ? "it must be finite and not negative" : "it must be finite and positive"});
  return {};
}

Result<void> check(const Observation& o, std::size_t index) {
  const RequestShape& shape = o.load.shape;
  return check({{"sequences", o.load.sequences, false},
                {"uncached_prompt_tokens", shape.uncached_prompt_tokens, true},
                {"output_tokens", shape.output_tokens, false},
                {"context_tokens", shape.context_tokens, true},
                {"tpot_s", o.tpot_s, false},
                {"ttft_s", o.ttft_s.value_or(1.0), false}},
               fmt::format("readings[{}]", index));
}

Result<void> check(const Prior& prior) {
  const StepTime& s = prior.step;
  const ParameterArray& d = prior.log_deviation;
  return check({{"a_s", s.a_s, false},
                {"b_s", s.b_s, true},
                {"k_s", s.k_s, true},
                {"c_s", s.c_s, true},
                {"slowness", s.slowness, false},
                {"log_deviation of a", d[0], true},
                {"log_deviation of b", d[1], true},
                {"log_deviation of k", d[2], true},
                {"log_deviation of c", d[3], true}},
               "prior");
}

Result<void> check(const FitOptions& o) {
  return check({{"tpot_noise", o.tpot_noise, false},
                {"ttft_noise", o.ttft_noise, false},
                {"huber", o.huber, false},
                {"log of widest", std::log(o.widest), false},
                {"iterations", static_cast<double>(o.iterations), false}},
               "options");
}

using Time = double (*)(const StepTime&, const Load&);
using Shares = ParameterArray (*)(const StepTime&, const Load&);

/// One measured time: what it is, what the curve says of it, and how far it may be off.
struct Reading {
  Load load;
  double measured_s;
  double noise;
  Time time;
  Shares shares;

  double residual(const StepTime& step) const { return std::log(time(step, load) / measured_s) / noise; }
};

using OneEach = ceres::SizedCostFunction<1, 1, 1, 1, 1>;

class ReadingCost final : public OneEach {
 public:
  ReadingCost(const Reading& reading, const StepTime& prior) : reading_(reading), prior_(prior) {}

  bool Evaluate(double const* const* logs, double* residual, double** jacobians) const override {
    ParameterArray values = to_array(prior_);
    for (std::size_t i = 0; i < parameters; ++i) values[i] *= std::exp(*logs[i]);
    const StepTime step = to_step(values, prior_.slowness);
    *residual = reading_.residual(step);
    if (jacobians == nullptr) return std::isfinite(*residual);
    const ParameterArray shares = reading_.shares(step, reading_.load);
    for (std::size_t i = 0; i < parameters; ++i)
      if (jacobians[i] != nullptr) *jacobians[i] = shares[i] / reading_.noise;
    return std::isfinite(*residual);
  }

 private:
  const Reading& reading_;
  const StepTime& prior_;
};

/// A parameter's log, relative to its prior, in deviations.
class PriorCost final : public ceres::SizedCostFunction<1, 1> {
 public:
  explicit PriorCost(double deviation) : deviation_(deviation) {}

  bool Evaluate(double const* const* log, double* residual, double** jacobians) const override {
    *residual = **log / deviation_;
    if (jacobians != nullptr && jacobians[0] != nullptr) *jacobians[0] = 1.0 / deviation_;
    return true;
  }

 private:
  double deviation_;
};

std::vector<Reading> to_readings(std::span<const Observation> observations, const FitOptions& options) {
  std::vector<Reading> out;
  for (const Observation& o : observations) {
    out.push_back({o.load, o.tpot_s, options.tpot_noise, tpot_s, tpot_shares});
    if (o.ttft_s) out.push_back({o.load, *o.ttft_s, options.ttft_noise, ttft_s, ttft_shares});
  }
  return out;
}

std::array<bool, parameters> free_ones(const Prior& prior) {
  std::array<bool, parameters> out{};
  const ParameterArray values = to_array(prior.step);
  for (std::size_t i = 0; i < parameters; ++i) out[i] = values[i] > 0 && prior.log_deviation[i] > 0;
  return out;
}

ceres::Solver::Summary minimise(const std::vector<Reading>& readings, const Prior& prior,
                                const FitOptions& options, ParameterArray& logs) {
  const auto free = free_ones(prior);
  const double bound = std::log(options.widest);
  ceres::Problem problem;
  for (const Reading& r : readings)
    problem.AddResidualBlock(new ReadingCost(r, prior.step), new ceres::HuberLoss(options.huber), &logs[0],
                             &logs[1], &logs[2], &logs[3]);
  for (std::size_t i = 0; i < parameters; ++i) {
    if (!free[i]) {
      problem.SetParameterBlockConstant(&logs[i]);
      continue;
    }
    problem.AddResidualBlock(new PriorCost(prior.log_deviation[i]), nullptr, &logs[i]);
    problem.SetParameterLowerBound(&logs[i], 0, -bound);
    problem.SetParameterUpperBound(&logs[i], 0, bound);
  }
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.num_threads = 1;
  solver.max_num_iterations = options.iterations;
  solver.function_tolerance = 1e-12;
  solver.parameter_tolerance = 1e-10;
  solver.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  return summary;
}

/// Robust standard deviation of the relative error: 1.4826 times the median of its size.
double seen_noise(const std::vector<Reading>& readings, const StepTime& step, Time of) {
  std::vector<double> sizes;
  for (const Reading& r : readings)
    if (r.time == of) sizes.push_back(std::abs(r.residual(step)) * r.noise);
  if (sizes.empty()) return 0.0;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return 1.4826 * *middle;
}

void set_covariance(const std::vector<Reading>& readings, const Prior& prior, const FitOptions& options,
                    CurveFit& fit) {
  const double ttft_noise = seen_noise(readings, fit.step, ttft_s);
  Matrix information = Matrix::Zero();
  for (const Reading& r : readings) {
    const double size = std::abs(r.residual(fit.step));
    const double weight = size > options.huber ? options.huber / size : 1.0;
    const double noise = std::max(r.noise, r.time == tpot_s ? fit.noise : ttft_noise);
    const ParameterArray shares = r.shares(fit.step, r.load);
    const Vector slope = Eigen::Map<const Vector>(shares.data()) / noise;
    information += weight * slope * slope.transpose();
  }
  const auto free = free_ones(prior);
  for (int i = 0; i < static_cast<int>(parameters); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (free[at]) {
      information(i, i) += 1.0 / (prior.log_deviation[at] * prior.log_deviation[at]);
    } else {  // a row of the identity: apart from the others, and cleared below
      information.row(i).setZero();
      information.col(i).setZero();
      information(i, i) = 1.0;
    }
  }
  const Matrix covariance = information.llt().solve(Matrix::Identity());
  for (std::size_t i = 0; i < parameters; ++i)
    for (std::size_t j = 0; j < parameters; ++j)
      fit.log_covariance[i][j] =
          free[i] && free[j] ? covariance(static_cast<int>(i), static_cast<int>(j)) : 0.0;
}

}  // namespace

Result<CurveFit> fit_curve(std::span<const Observation> observations, const Prior& prior,
                           const FitOptions& options) {
  if (observations.empty())
    return tl::unexpected(
        Error{ErrorKind::invalid, "no readings", "readings", "keep the prior until there are some"});
  for (std::size_t i = 0; i < observations.size(); ++i)
    if (auto ok = check(observations[i], i); !ok) return tl::unexpected(ok.error());
  if (auto ok = check(prior); !ok) return tl::unexpected(ok.error());
  if (auto ok = check(options); !ok) return tl::unexpected(ok.error());

  const std::vector<Reading> readings = to_readings(observations, options);
  ParameterArray logs{};  // relative to the prior
  const ceres::Solver::Summary summary = minimise(readings, prior, options, logs);
  if (!summary.IsSolutionUsable())
    return tl::unexpected(
        Error{ErrorKind::internal, "the fit failed: " + summary.message, "", "keep the last curve"});

  CurveFit fit;
  ParameterArray values = to_array(prior.step);
  for (std::size_t i = 0; i < parameters; ++i) values[i] *= std::exp(logs[i]);
  fit.step = to_step(values, prior.step.slowness);
  fit.noise = seen_noise(readings, fit.step, tpot_s);
  fit.iterations = static_cast<int>(summary.iterations.size());
  fit.converged = summary.termination_type == ceres::CONVERGENCE;
  fit.outliers =
      static_cast<std::size_t>(std::count_if(readings.begin(), readings.end(), [&](const Reading& r) {
        return r.time == tpot_s && std::abs(r.residual(fit.step)) > options.huber;
      }));
  set_covariance(readings, prior, options, fit);
  return fit;
}

double predicted_variance(const CurveFit& fit, const Load& load) {
  const ParameterArray shares = tpot_shares(fit.step, load);
  double out = 0;
  for (std::size_t i = 0; i < parameters; ++i)
    for (std::size_t j = 0; j < parameters; ++j) out += shares[i] * fit.log_covariance[i][j] * shares[j];
  return out;
}

}  // namespace signalbox::optimizer
