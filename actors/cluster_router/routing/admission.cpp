#include "actors/cluster_router/routing/admission.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::routing {

void PlanGate::remap(const std::vector<ClassIndex>& from) {
  std::vector<double> credit(from.size(), 0.5);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].valid()) credit[i] = credit_[from[i].at()];
  credit_ = std::move(credit);
}

bool PlanGate::admit(ClassIndex request_class, double share) {
  // Bresenham's line: the credit stays in [0, 1).
  double& credit = credit_[request_class.at()];
  credit += share;
  if (credit < 1.0) return false;
  credit -= 1.0;
  return true;
}

void FloorCredits::remap(const std::vector<ClassIndex>& from) {
  std::vector<double> credit(from.size(), 0.0);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].valid()) credit[i] = credit_[from[i].at()];
  credit_ = std::move(credit);
}

void FloorCredits::offered(ClassIndex request_class, double floor_share) {
  double& credit = credit_[request_class.at()];
  credit = std::min(most, credit + floor_share);
}

void FloorCredits::admitted(ClassIndex request_class) {
  double& credit = credit_[request_class.at()];
  credit = std::max(-1.0, credit - 1.0);
}

namespace {

constexpr double rate_window_s = 5.0;

}  // namespace

void DrainRate::left(Instant now) {
  // An exponentially weighted count of departures, normalised by its window.
  const double gap = last_ == never_yet ? rate_window_s : to_seconds(now - last_);
  per_s_ = per_s_ * std::exp(-std::max(0.0, gap) / rate_window_s) + 1.0 / rate_window_s;
  last_ = now;
}

Duration DrainRate::retry_after(std::size_t waiting, const policy::Queue& bounds, Instant now,
                                Rng& rng) const {
  const double silence = last_ == never_yet ? 0.0 : std::max(0.0, to_seconds(now - last_));
  const double rate = per_s_ * std::exp(-silence / rate_window_s);
  const double expected = rate > 1e-9 ? (static_cast<double>(waiting) + 1.0) / rate : 1e9;
  const Duration jittered = from_seconds(std::ceil(expected * rng.uniform(0.8, 1.2)));
  return std::clamp(jittered, bounds.retry_after_low,
                    std::max(bounds.retry_after_low, bounds.retry_after_high));
}

}  // namespace signalbox::routing
