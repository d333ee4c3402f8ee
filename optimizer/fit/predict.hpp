// What the service curve says a client sees at a load in the steady state, and how each parameter moves it.
//
// With N sequences decoding, each of O tokens and after a prefill of U, a step carries N sequences with N*L
// tokens of context and, as a request ends every O/N steps, N*U/O prefilled tokens. It lasts
//     T = s * (a + b*N + k*N*L + c*N*U/O),
// which is the time per output token. It is the T = s*a / (1 - y) of optimizer/model at the load y of N
// requests. The first token takes its own step and the prefill, stretched like everything else: T * (1 +
// c*U/a).
#pragma once

#include <array>

#include "optimizer/model/service_curve.hpp"

namespace signalbox::optimizer {

/// The fitted parameters, in this order wherever an array speaks of them: a, b, k, c of StepTime.
inline constexpr std::size_t parameters = 4;
using ParameterArray = std::array<double, parameters>;

ParameterArray to_array(const StepTime& step);
StepTime to_step(const ParameterArray& values, double slowness);

/// A steady load of one engine: sequences in its decoding batch and their mean shape.
struct Load {
  double sequences = 0;
  RequestShape shape;
};

double tpot_s(const StepTime& step, const Load& load);
double ttft_s(const StepTime& step, const Load& load);
/// d log(tpot) / d log(parameter): the share of the step that each term makes up. They sum to 1.
ParameterArray tpot_shares(const StepTime& step, const Load& load);
/// d log(ttft) / d log(parameter).
ParameterArray ttft_shares(const StepTime& step, const Load& load);

}  // namespace signalbox::optimizer
