// Instants and durations. A pure room receives the time as an argument; this clock cannot be read.
#pragma once

#include <chrono>
#include <cmath>
#include <limits>

namespace signalbox {

/// The monotonic time line of one process. It has no now(): only shells know what time it is.
struct MonotonicTimeline {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicTimeline>;
  static constexpr bool is_steady = true;
};

using Duration = std::chrono::nanoseconds;
using Instant = MonotonicTimeline::time_point;

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ns;

/// A duration in seconds.
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

/// A duration from seconds, rounded to nanoseconds and clamped to about +-292 years. NaN gives zero.
inline Duration from_seconds(double seconds) {
  constexpr double limit = 9.2e9;
  if (std::isnan(seconds)) return Duration::zero();
  if (seconds >= limit) return Duration::max();
  if (seconds <= -limit) return Duration::min();
  return Duration{std::llround(seconds * 1e9)};
}

/// An instant from nanoseconds since the time line's origin.
constexpr Instant instant_at(Duration since_origin) { return Instant{since_origin}; }

/// The instant that no event has reached; min() of the time line.
inline constexpr Instant never_yet = Instant::min();
/// The instant that no event reaches; max() of the time line.
inline constexpr Instant end_of_time = Instant::max();

}  // namespace signalbox
