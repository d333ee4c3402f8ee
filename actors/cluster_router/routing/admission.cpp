#include "actors/cluster_router/routing/admission.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

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

std::optional<Waiting> WaitingRoom::add(const Waiting& newcomer, std::size_t depth) {
  std::size_t of_class = 0;
  auto last = waiting_.end();
  for (auto w = waiting_.begin(); w != waiting_.end(); ++w) {
    if (w->request_class != newcomer.request_class) continue;
    ++of_class;
    last = w;
  }
  std::optional<Waiting> given_up;
  if (of_class >= depth) {
    if (last == waiting_.end() || last->criticality >= newcomer.criticality) return newcomer;
    given_up = *last;
    waiting_.erase(last);
  }
  const auto place =
      std::upper_bound(waiting_.begin(), waiting_.end(), newcomer, [](const Waiting& a, const Waiting& b) {
        return std::tuple(b.criticality, a.until) < std::tuple(a.criticality, b.until);
      });
  waiting_.insert(place, newcomer);
  return given_up;
}

void WaitingRoom::remove(Ticket ticket) {
  std::erase_if(waiting_, [&](const Waiting& w) { return w.ticket == ticket; });
}

std::optional<Waiting> WaitingRoom::expired(Instant now) const {
  const auto least = std::min_element(waiting_.begin(), waiting_.end(),
                                      [](const Waiting& a, const Waiting& b) { return a.until < b.until; });
  if (least == waiting_.end() || least->until > now) return std::nullopt;
  return *least;
}

Instant WaitingRoom::earliest() const {
  Instant least = end_of_time;
  for (const Waiting& w : waiting_) least = std::min(least, w.until);
  return least;
}

std::vector<Waiting> WaitingRoom::remap(const std::vector<ClassIndex>& to) {
  std::vector<Waiting> kept, homeless;
  for (Waiting& w : waiting_) {
    w.request_class = to[w.request_class.at()];
    (w.request_class.valid() ? kept : homeless).push_back(w);
  }
  waiting_ = std::move(kept);
  return homeless;
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
