#include "actors/health_monitor/machine/accrual.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace signalbox::health_monitor {

namespace {
/// What one interval weighs against those before: a pace that changed is known after about ten words.
constexpr double learning = 0.125;
constexpr double shortest_s = 0.001, longest_s = 30;
/// The least spread that is believed, as a share of the mean: schedulers and networks are never quite punctual.
constexpr double least_spread = 1.0 / 3;
/// Before the mean interval is over silence says little, but not nothing.
constexpr double early = 0.1;
}  // namespace

void Accrual::heard(Instant at) {
  const double interval = std::clamp(to_seconds(at - heard_at_), shortest_s, longest_s);
  heard_at_ = std::max(heard_at_, at);
  if (!std::exchange(spoke_, true)) return;
  if (!std::exchange(paced_, true)) {
    mean_s_ = interval;
    deviation_s_ = interval / 2;
    return;
  }
  deviation_s_ += learning * (std::abs(interval - mean_s_) - deviation_s_);
  mean_s_ += learning * (interval - mean_s_);
}

double Accrual::phi(Instant now) const {
  const double silence = std::max(to_seconds(now - heard_at_), 0.0);
  const double spread = std::max(deviation_s_, least_spread * mean_s_);
  return (early * silence / mean_s_ + std::max(silence - mean_s_, 0.0) / spread) * std::numbers::log10e;
}

}  // namespace signalbox::health_monitor
