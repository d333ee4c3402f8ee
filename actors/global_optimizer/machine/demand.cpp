#include "actors/global_optimizer/machine/demand.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::global_optimizer {

namespace {

/// Until something was measured.
constexpr double guessed_prompt_tokens = 500, guessed_output_tokens = 128;
/// Standard deviations of a Poisson count over `memory` that the planned rate lies above the mean.
constexpr double quantile_sigmas = 1.0;

double kept_share(Duration period, Duration memory) {
  return std::exp(-to_seconds(period) / to_seconds(memory));
}

}  // namespace

void DemandBook::hear(const schema::DemandReport& report, const ProcessName& name, const Digest& policy,
                      Instant now) {
  const double seconds = to_seconds(report.period);
  if (report.policy != policy || seconds <= 0) return;
  Router& router = routers_[name];
  if (router.weight > 0 && now - router.heard_at > lifetime) router = {};
  router.cluster = report.cluster;
  router.heard_at = now;
  const double keep = kept_share(report.period, memory), keep_shape = kept_share(report.period, shape_memory);
  router.weight = keep * router.weight + (1 - keep);
  const double gain = (1 - keep) / router.weight;  // the first report counts in full
  for (auto& [c, sums] : router.classes) {
    sums.rate_per_s *= 1 - gain;
    for (double* sum : {&sums.offered, &sums.prompt, &sums.finished, &sums.cached, &sums.output})
      *sum *= keep_shape;
  }
  for (const auto& row : report.rows) {
    Sums& sums = router.classes[row.request_class];
    sums.rate_per_s += gain * static_cast<double>(row.offered) / seconds;
    sums.offered += static_cast<double>(row.offered);
    sums.prompt += static_cast<double>(row.prompt_tokens);
    sums.finished += static_cast<double>(row.finished);
    sums.cached += static_cast<double>(row.cached_tokens);
    sums.output += static_cast<double>(row.output_tokens);
  }
}

Expected DemandBook::of(const ClusterName& cluster, ClassIndex c, Instant now) const {
  Sums sums;
  for (const auto& [name, router] : routers_) {
    if (router.cluster != cluster || now - router.heard_at > lifetime) continue;
    const auto found = router.classes.find(c);
    if (found == router.classes.end()) continue;
    const Sums& s = found->second;
    sums.rate_per_s += s.rate_per_s;
    sums.offered += s.offered, sums.prompt += s.prompt;
    sums.finished += s.finished, sums.cached += s.cached, sums.output += s.output;
  }
  Expected out;
  out.measured = sums.offered > 0.5;
  out.rate_per_s = sums.rate_per_s < 1e-4 ? 0 : sums.rate_per_s;
  out.planned_per_s = out.rate_per_s + quantile_sigmas * std::sqrt(out.rate_per_s / to_seconds(memory));
  const double prompt = out.measured ? std::max(1.0, sums.prompt / sums.offered) : guessed_prompt_tokens;
  const double cached = sums.finished > 0.5 ? std::clamp(sums.cached / sums.finished, 0.0, 0.99 * prompt) : 0;
  const double output =
      sums.finished > 0.5 ? std::max(1.0, sums.output / sums.finished) : guessed_output_tokens;
  out.shape = {std::max(1.0, prompt - cached), output, prompt + output / 2};
  return out;
}

double DemandBook::total_per_s(Instant now) const {
  double out = 0;
  for (const auto& [name, router] : routers_)
    if (now - router.heard_at <= lifetime)
      for (const auto& [c, sums] : router.classes) out += sums.rate_per_s;
  return out;
}

}  // namespace signalbox::global_optimizer
