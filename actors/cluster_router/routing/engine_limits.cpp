#include "actors/cluster_router/routing/engine_limits.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::routing {

namespace {

/// Curves do not know everything: an answer is late by what exceeds this many times the expected.
constexpr double leeway = 1.5;
/// Answers of a window before it is judged; where the limit is less, so many.
constexpr std::int64_t most_answers = 3;
constexpr double rate_window_s = 10;
constexpr double least_rise = 0.1, most_rise = 0.4;
/// Per answer. Down faster than up: what made an answer late may have been a queue, what made it fast was not.
constexpr double follow_up = 0.02, follow_down = 0.1;

}  // namespace

void EngineLimits::remap(const std::vector<EngineIndex>& from) {
  std::vector<PerEngine> engines(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].valid()) engines[i] = engines_[from[i].at()];
  engines_ = std::move(engines);
}

void EngineLimits::sent(EngineIndex engine, std::int64_t in_flight, std::int64_t limit, Instant now) {
  PerEngine& e = engines_[engine.at()];
  if (e.opened == never_yet) open_window(e, now);
  e.bound |= in_flight >= limit;
}

std::int64_t EngineLimits::answered(EngineIndex engine, const AnswerDelay& delay, Duration target,
                                    Instant now) {
  PerEngine& e = engines_[engine.at()];
  if (target <= Duration::zero()) return e.limit = none;
  learn_base(e, delay);
  if (delay.began < e.risen) return e.limit;
  if (e.opened == never_yet) open_window(e, delay.began);
  const double excess = delay.took_s - leeway * e.base * delay.expected_s;
  if (e.answers++ == 0 || excess < e.least_excess_s) {
    e.least_excess_s = excess;
    e.ahead = delay.ahead;
  }
  if (e.answers >= std::min(most_answers, e.limit) && now - e.opened >= window)
    judge(e, to_seconds(target), now);
  return e.limit;
}

/// Where a few are in flight, or half of the limit, the time that an answer takes is the engine's own.
void EngineLimits::learn_base(PerEngine& e, const AnswerDelay& delay) {
  if (!(delay.expected_s > 0)) return;
  const double ratio = delay.took_s / delay.expected_s;
  if (e.base == 0) e.base = delay.curve_known ? 1.0 : ratio;
  if (delay.ahead <= few || (e.limit != none && 2 * delay.ahead <= e.limit))
    e.base += (ratio < e.base ? follow_down : follow_up) * (ratio - e.base);
  // Faster than a known curve is a prompt that was cached without our knowledge, not a faster engine.
  if (delay.curve_known) e.base = std::max(1.0, e.base);
}

void EngineLimits::judge(PerEngine& e, double target_s, Instant now) {
  const double elapsed = to_seconds(now - e.opened);
  const double rate = static_cast<double>(e.answers) / elapsed;
  e.rate = e.rate == 0 ? rate : rate + (e.rate - rate) * std::exp(-elapsed / rate_window_s);
  const bool queues = e.least_excess_s > target_s;
  const bool idles = e.limit != none && e.bound && e.least_excess_s < 0.5 * target_s;
  e.rise = idles ? std::clamp(2 * e.rise, least_rise, most_rise) : 0.0;
  if (queues) {
    const double queued = e.rate * (e.least_excess_s - 0.5 * target_s);
    const auto unqueued = static_cast<std::int64_t>(std::ceil(static_cast<double>(e.ahead + 1) - queued));
    const std::int64_t half = e.limit == none ? 1 : e.limit / 2;  // no window is trusted with more
    e.limit = std::min(e.limit, std::max({unqueued, half, std::int64_t{1}}));
  } else if (idles) {
    e.limit += std::max<std::int64_t>(1, static_cast<std::int64_t>(e.rise * static_cast<double>(e.limit)));
    e.risen = now;
  }
  open_window(e, now);
}

void EngineLimits::open_window(PerEngine& e, Instant now) {
  e.opened = now;
  e.answers = 0;
  e.bound = false;
}

}  // namespace signalbox::routing
