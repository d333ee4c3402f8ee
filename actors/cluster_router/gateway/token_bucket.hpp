// A rate limit that several event loops share: a token bucket as one atomic number, the time at which it will be full again
// (the generic cell rate algorithm of ITU-T I.371, which needs neither a lock nor a refill).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "messages/base/time.hpp"

namespace signalbox::gateway {

class TokenBucket {
 public:
  /// A minute's worth may be taken at once; 0: no limit.
  explicit TokenBucket(double per_minute) : per_minute_(per_minute) {}

  bool limits() const { return per_minute_ > 0; }
  double per_minute() const { return per_minute_; }

  /// Takes `amount` if it is there. More than a minute's worth is let through when the bucket is full, and then owed.
  bool take(double amount, Instant now) {
    if (!limits()) return true;
    const std::int64_t cost = time_of(amount), at = count(now);
    const std::int64_t longest = time_of(per_minute_) - time_of(std::min(amount, per_minute_));
    std::int64_t full = full_at_.load(std::memory_order_relaxed);
    do {
      if (full - at > longest) return false;
    } while (!full_at_.compare_exchange_weak(full, std::max(full, at) + cost, std::memory_order_relaxed));
    return true;
  }
  /// Corrects what was taken by an estimate: positive takes more, negative gives back.
  void correct(double amount, Instant now) {
    if (!limits() || amount == 0) return;
    const std::int64_t cost = time_of(std::abs(amount)), at = count(now);
    std::int64_t full = full_at_.load(std::memory_order_relaxed);
    while (!full_at_.compare_exchange_weak(full, amount > 0 ? std::max(full, at) + cost : full - cost,
                                           std::memory_order_relaxed)) {
    }
  }

  /// What could be taken now.
  double remaining(Instant now) const {
    return std::max(0.0, per_minute_ * (1.0 - to_seconds(until_full(now)) / 60.0));
  }
  Duration until_full(Instant now) const {
    return Duration(std::max<std::int64_t>(0, full_at_.load(std::memory_order_relaxed) - count(now)));
  }
  /// Until take(amount) would succeed if nobody else took anything.
  Duration until_free(double amount, Instant now) const {
    return std::max(Duration::zero(), until_full(now) - Duration(time_of(per_minute_) -
                                                                 time_of(std::min(amount, per_minute_))));
  }

 private:
  static std::int64_t count(Instant when) { return when.time_since_epoch().count(); }
  /// How long the bucket takes to gain this much. Sums of any size stay far from the range's end.
  std::int64_t time_of(double amount) const {
    constexpr double longest_s = 1e6;
    return from_seconds(std::min(amount / per_minute_ * 60.0, longest_s)).count();
  }

  const double per_minute_;
  std::atomic<std::int64_t> full_at_{INT64_MIN / 2};
};

}  // namespace signalbox::gateway
