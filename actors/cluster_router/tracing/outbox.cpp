#include "actors/cluster_router/tracing/outbox.hpp"

#include <algorithm>
#include <iterator>

namespace signalbox::tracing {

void Outbox::add(EndedTrace trace, Instant now) {
  if (waiting() >= options_.most) return void(++counters_.dropped);
  if (waiting_.empty()) oldest_ = now;
  waiting_.push_back(std::move(trace));
}

Instant Outbox::due() const {
  if (waiting() == 0) return end_of_time;
  if (hurried_) return never_yet;
  if (!batch_.empty()) return paused_until_;
  const Instant full = waiting_.size() >= options_.batch ? never_yet : oldest_ + options_.linger;
  return std::max(full, paused_until_);
}

const std::vector<EndedTrace>& Outbox::next(Instant now) {
  static const std::vector<EndedTrace> nothing;
  if (due() > now) return nothing;
  if (batch_.empty()) {
    const auto end =
        waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), options_.batch));
    batch_.assign(std::move_iterator(waiting_.begin()), std::move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    oldest_ = waiting_.empty() ? end_of_time : now;
  }
  return batch_;
}

void Outbox::settle() {
  batch_.clear();
  pause_ = Duration::zero();
  paused_until_ = never_yet;
}

void Outbox::sent() {
  counters_.exported += batch_.size();
  settle();
}

void Outbox::refused() {
  ++counters_.failures;
  counters_.refused += batch_.size();
  settle();
}

void Outbox::failed(Instant now, Duration retry_after) {
  ++counters_.failures;
  pause_ = std::clamp(2 * pause_, options_.first_pause, options_.longest_pause);
  paused_until_ = now + std::min(std::max(pause_, retry_after), options_.longest_pause);
}

}  // namespace signalbox::tracing
