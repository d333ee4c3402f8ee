// The service curve of one engine, estimated from what was measured of it: bounded robust least squares
// with Ceres.
//
// The unknowns are the logarithms of a, b, k, c, so that all stay positive and errors are relative. A
// residual is the log of predicted over measured time (the relative error, to first order) in standard
// deviations of the noise, under Huber's loss, so that a reading taken in a stall pulls no harder than one
// a little off. The prior is one more residual per parameter: where the data say nothing it holds, and it
// keeps the problem well posed when all loads look alike (then only the sum of the terms is known, and the
// covariance says so).
//
// The covariance is the inverse of J'WJ at the estimate, J in logarithms, W from Huber's weights and the
// greater of the stated and the seen noise. Through predicted_variance it grows away from the loads
// visited.
//
// One thread, stopped by iterations: equal input gives equal output.
#pragma once

#include <optional>
#include <span>

#include "messages/base/result.hpp"
#include "optimizer/fit/predict.hpp"

namespace signalbox::optimizer {

/// Means over a window in which the load was steady. Served, not offered, load.
struct Observation {
  Load load;
  double tpot_s = 0;             ///< mean time per output token; > 0
  std::optional<double> ttft_s;  ///< mean time to first token without waiting for a slot; > 0 when said
};

/// What is believed before any measurement.
struct Prior {
  StepTime step;  ///< its slowness is kept. b, k or c of 0: the term does not exist and is not fitted
  ParameterArray log_deviation{0.5, 0.5, 0.5, 0.5};  ///< of each parameter's log; 0: known exactly
};

struct FitOptions {
  double tpot_noise = 0.05;  ///< standard deviation of one reading's relative error
  double ttft_noise = 0.30;
  double huber = 1.5;   ///< residuals beyond this many deviations count linearly
  double widest = 1e4;  ///< no parameter leaves its prior by more than this factor
  int iterations = 100;
};

struct CurveFit {
  StepTime step;
  std::array<ParameterArray, parameters> log_covariance{};  ///< of the parameters' logs
  double noise = 0;          ///< the relative error of time per token that was seen (robust deviation)
  std::size_t outliers = 0;  ///< readings of time per token beyond Huber's limit
  int iterations = 0;
  bool converged = false;  ///< false: the iterations ran out; the estimate is the best so far
};

/// Refuses, with the reading's index and the field: no readings; a value that is negative, zero where it must
/// not be, or not finite; a prior or options outside their range.
Result<CurveFit> fit_curve(std::span<const Observation> readings, const Prior& prior,
                           const FitOptions& options = {});

/// Variance of log(tpot_s(fit.step, load)): the square of the relative error to expect of the curve there.
double predicted_variance(const CurveFit& fit, const Load& load);

}  // namespace signalbox::optimizer
