#include "actors/engine_proxy/machine/slowness.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::engine_proxy {

namespace {
constexpr double least_tokens = 8;

double grown(std::optional<double> before, std::optional<double> after) {
  return before && after ? std::max(0.0, *after - *before) : 0;
}
}  // namespace

std::optional<StepSample> step_between(const Reading& before, const Reading& after, Duration between,
                                       double declared_kv_tokens) {
  const double seconds = to_seconds(between);
  if (!before.running || !after.running || seconds <= 0) return std::nullopt;
  if (*before.running < 1 || *after.running < 1) return std::nullopt;
  StepSample out;
  out.running = (*before.running + *after.running) / 2;
  if (before.token_time && after.token_time) {
    const double tokens = after.token_time->count - before.token_time->count;
    const double time = after.token_time->sum_s - before.token_time->sum_s;
    if (tokens < least_tokens || time <= 0) return std::nullopt;
    out.step_s = time / tokens;
  } else {
    const double tokens = grown(before.output_tokens_total, after.output_tokens_total);
    if (tokens < least_tokens) return std::nullopt;
    out.step_s = seconds * out.running / tokens;
  }
  if (after.kv_usage)
    out.context_tokens = *after.kv_usage * after.kv_capacity_tokens.value_or(declared_kv_tokens);
  out.prefill_per_s = std::max(0.0, grown(before.prompt_tokens_total, after.prompt_tokens_total) -
                                        grown(before.cached_tokens_total, after.cached_tokens_total)) /
                      seconds;
  return out;
}

double slowness_of(const StepSample& sample, const optimizer::StepTime& declared) {
  const double predicted = declared.a_s + declared.b_s * sample.running +
                           declared.k_s * sample.context_tokens +
                           declared.c_s * sample.prefill_per_s * sample.step_s;
  return predicted > 0 ? sample.step_s / predicted : 1;
}

void Slowness::observe(double ratio) {
  const double log = std::log(std::clamp(ratio, least, most));
  log_ = samples_ == 0 ? log : log_ + newest * (log - log_);
  ++samples_;
}

void Slowness::idle(Duration since_last) {
  log_ *= std::exp2(-to_seconds(since_last) / to_seconds(forget_half_life));
}

double Slowness::value() const { return std::clamp(std::exp(log_), least, most); }

}  // namespace signalbox::engine_proxy
