#include "actors/engine_proxy/machine/slowness.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::engine_proxy {

namespace {
constexpr double least_tokens = 8;
/// Of one reading's ratio, at the least.
constexpr double least_noise = 0.03;

double grown(std::optional<double> before, std::optional<double> after) {
  return before && after ? std::max(0.0, *after - *before) : 0;
}

double prompt_tokens_computed(const Reading& before, const Reading& after) {
  return std::max(0.0, grown(before.prompt_tokens_total, after.prompt_tokens_total) -
                           grown(before.cached_tokens_total, after.cached_tokens_total));
}

/// Of the mean batch's tokens, those that wait for a prompt: its step comes before it joins the batch, so that half a
/// sequence less than the span's mean is there.
double tokens_beside_a_prompt(double running) { return std::max(0.0, 1 - 0.5 / running); }
}  // namespace

std::optional<StepSample> step_between(const Reading& before, const Reading& after, Duration between,
                                       double declared_kv_tokens) {
  const double seconds = to_seconds(between);
  if (!before.running || !after.running || seconds <= 0) return std::nullopt;
  if (*before.running < 1 || *after.running < 1) return std::nullopt;
  StepSample out;
  const double steps = grown(before.steps_total, after.steps_total);
  out.running = (*before.running + *after.running) / 2;
  if (before.token_time && after.token_time) {
    const double tokens = after.token_time->count - before.token_time->count;
    const double time = after.token_time->sum_s - before.token_time->sum_s;
    if (tokens < least_tokens || time <= 0) return std::nullopt;
    out.step_s = time / tokens;
    out.tokens = tokens;
    if (steps > 0) out.running = tokens / steps;
  } else {
    const double tokens = grown(before.output_tokens_total, after.output_tokens_total);
    if (tokens < least_tokens) return std::nullopt;
    out.step_s = seconds * out.running / tokens;
    out.tokens = tokens;
  }
  if (after.kv_usage)
    out.context_tokens = *after.kv_usage * after.kv_capacity_tokens.value_or(declared_kv_tokens);
  const double computed = prompt_tokens_computed(before, after);
  out.steps = steps > 0 ? steps : seconds / out.step_s;
  out.computed_tokens = computed;
  if (before.first_token_time && after.first_token_time)
    out.prompts = std::max(0.0, after.first_token_time->count - before.first_token_time->count);
  if (computed > 0) out.prompts = std::max(1.0, out.prompts);
  out.prefill_tokens =
      steps > 0 ? computed / steps * tokens_beside_a_prompt(out.running) : computed * out.step_s / seconds;
  return out;
}

double predicted_step_s(const StepSample& sample, const optimizer::StepTime& declared) {
  return declared.a_s + declared.b_s * sample.running + declared.k_s * sample.context_tokens +
         declared.c_s * sample.prefill_tokens;
}

bool Slowness::observe(const StepSample& sample, double predicted_s, double variance, Duration between) {
  if (predicted_s <= 0) return false;
  const double ratio = std::clamp(sample.step_s / predicted_s, least, most);
  const double exposure = predicted_s * sample.tokens;
  const double noise = std::sqrt(least_noise * least_noise + variance);
  const double deviation = samples_ == 0 ? 0 : std::log(ratio / value()) / noise;
  ++samples_;
  return level_.observe({ratio * exposure, exposure}, deviation,
                        std::exp(-to_seconds(between) / to_seconds(memory)));
}

void Slowness::idle(Duration since_last) {
  level_.move_to(std::pow(value(), std::exp2(-to_seconds(since_last) / to_seconds(forget_half_life))));
}

double Slowness::value() const { return level_.exposure() > 0 ? std::clamp(level_.value(), least, most) : 1; }

}  // namespace signalbox::engine_proxy
