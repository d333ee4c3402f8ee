#include "optimizer/fit/predict.hpp"

namespace signalbox::optimizer {
namespace {

ParameterArray terms(const StepTime& step, const Load& load) {
  const double n = load.sequences;
  const RequestShape& shape = load.shape;
  return {step.a_s, step.b_s * n, step.k_s * n * shape.context_tokens,
          step.c_s * n * shape.uncached_prompt_tokens / shape.output_tokens};
}

double sum(const ParameterArray& values) { return values[0] + values[1] + values[2] + values[3]; }

}  // namespace

ParameterArray to_array(const StepTime& step) { return {step.a_s, step.b_s, step.k_s, step.c_s}; }

StepTime to_step(const ParameterArray& values, double slowness) {
  return {values[0], values[1], values[2], values[3], slowness};
}

double tpot_s(const StepTime& step, const Load& load) { return step.slowness * sum(terms(step, load)); }

double ttft_s(const StepTime& step, const Load& load) {
  return tpot_s(step, load) * (1.0 + step.c_s * load.shape.uncached_prompt_tokens / step.a_s);
}

ParameterArray tpot_shares(const StepTime& step, const Load& load) {
  ParameterArray shares = terms(step, load);
  const double total = sum(shares);
  for (double& share : shares) share /= total;
  return shares;
}

ParameterArray ttft_shares(const StepTime& step, const Load& load) {
  ParameterArray shares = tpot_shares(step, load);
  const double prefill = step.c_s * load.shape.uncached_prompt_tokens;
  const double part = prefill / (step.a_s + prefill);
  shares[0] -= part;
  shares[3] += part;
  return shares;
}

}  // namespace signalbox::optimizer
