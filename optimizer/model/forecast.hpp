// A rate of requests: where it stands, where it is going, and what it will hardly exceed.
//
// Three parts, each used only as far as the data carry it:
// * level: a Level, so a long mean while nothing speaks against it, and a new one soon after a step;
// * trend: the slope of a straight line through the same past (weights e^(-age/memory)), faded in by how many of its own
//   standard deviations it lies from zero, and damped over the horizon (Gardner and McKenzie, 1985): nobody knows that a
//   rise goes on for longer than it has been seen;
// * season: the mean rate by time of day, once two days are known; matters for horizons of minutes.
//
// The upper quantile is the forecast and z standard deviations of a Poisson count in the window that a plan must hold for.
// Requests come in bursts, not as Poisson's do, so z is what makes the promise come true: it is raised a little whenever a
// window exceeded its promise and lowered a little when not (adaptive conformal inference; Gibbs and Candès, 2021).
#pragma once

#include <array>
#include <optional>

#include "messages/base/time.hpp"
#include "optimizer/model/level.hpp"

namespace signalbox::optimizer {

/// Mean rate by time of day, over the days seen. The day begins when the owner's clock says zero.
class Season {
 public:
  static constexpr std::size_t bins = 48;
  static constexpr double day_s = 86'400;

  void observe(double count, double seconds, double at_s);
  /// The rate at `to_s` over that at `from_s`, drawn towards 1 as no day is like the last; 1 until both were seen on two days, never further from 1 than a factor of 4.
  double ratio(double from_s, double to_s) const;

 private:
  struct Bin {
    double rate_per_s = 0;
    unsigned days = 0;
  };
  std::optional<double> rate_at(double at_s) const;
  static std::size_t bin_of(double at_s);
  std::array<Bin, bins> bins_{};
  std::size_t open_ = bins;  ///< the bin that is being counted
  double count_ = 0, seconds_ = 0;
};

class Forecast {
 public:
  static constexpr Duration memory = 30s;  ///< time constant while no step is seen
  static constexpr Duration window = 4s;   ///< what the upper quantile holds for
  static constexpr double quantile = 0.84;
  static constexpr double alarm = 8;  ///< of the level's steps

  /// `count` requests came in the `seconds` before `at`. True if the level has stepped.
  bool observe(double count, double seconds, Instant at);
  /// It is known that nobody came for so long.
  void was_silent(double seconds) { level_.observe({0, seconds}, 0, 1); }
  /// Somebody who sees more knows that the rate is another one, as surely as if it had been seen for so long.
  void restart(double rate_per_s, double seconds);

  /// Requests per second, `ahead` after the last observation; 0: now.
  double rate_per_s(Duration ahead = {}) const;
  /// What the mean rate of the next window will exceed in a share of 1 - quantile of all windows.
  double upper_per_s() const;
  /// What is asked for in spite of chance: the level less a standard deviation of what it rests on, without a trend. To refuse
  /// somebody takes as much.
  double sure_per_s() const;
  /// Seconds that the level rests on.
  double exposure() const { return level_.exposure(); }
  double level_per_s() const { return level_.value(); }

 private:
  /// Sums over the past, weighted w = e^(-age/memory): of w, w t, w t^2 and the same of w^2 by seconds; of w and w t by
  /// requests. t counts from now and is negative.
  struct Line {
    double s0 = 0, s1 = 0, s2 = 0, q0 = 0, q1 = 0, q2 = 0, y0 = 0, y1 = 0;
    void age(double seconds, double keep);
    void add(double count, double seconds);
    /// As if the rate had been this for so long.
    void restart(double rate, double seconds);
  };
  struct Trend {
    double slope = 0;  ///< requests per second, per second; 0 unless significant
    double now = 0;    ///< the rate at the end of the line
    double share = 0;  ///< how far the line is believed against the level, 0 to 1
  };
  Trend trend() const;
  void keep_promise(double count, double seconds);

  Level level_{alarm};
  Line line_;
  Season season_;
  Instant at_ = never_yet;
  double z_ = 1.0;
  struct Promise {
    double upper_per_s = 0, count = 0, seconds = 0;
  };
  std::optional<Promise> promise_;
};

}  // namespace signalbox::optimizer
