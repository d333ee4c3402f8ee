// What holds for a while and then steps: a rate of requests, an engine's slowness. A plain moving average must choose
// between following noise and following late. This one averages over a long memory while nothing speaks against it, and
// starts anew from what came since the change once a two-sided CUSUM (Page, 1954) tells that the level has stepped.
#pragma once

#include <array>

namespace signalbox::optimizer {

/// Something counted or measured, and what it is counted in: requests and seconds, measured and predicted time.
struct Tally {
  double amount = 0;
  double exposure = 0;
};

/// The level is the sum of the amounts over the sum of the exposures, so that errors which the next observation
/// takes back cancel.
class Level {
 public:
  /// `alarm`: the evidence of a step, in standard deviations beyond half a deviation per observation, that is believed.
  /// At 6 normal noise alone is believed once in 1,300 observations, and a step of 2 deviations within 5; at 8 once in
  /// 9,600, within 6 (Siegmund's approximation). Never less than three observations.
  explicit Level(double alarm) : alarm_(alarm) {}
  /// `keep`: the share of what was known before that is still believed, in [0, 1]. `deviation`: how far the
  /// observation lies from value(), in standard deviations of its least plausible noise. That the noise is greater
  /// is learnt. True if the level has stepped: it starts anew from what came since.
  bool observe(Tally seen, double deviation, double keep);
  double value() const { return known_.exposure > 0 ? known_.amount / known_.exposure : 0; }
  /// Of all that the value rests on; 0 before the first observation.
  double exposure() const { return known_.exposure; }
  /// Starts anew from this value, as if it had been seen for so long.
  void restart(double value, double exposure) {
    known_ = {value * exposure, exposure};
    sides_ = {};
  }
  /// Takes the value there, as sure as before.
  void move_to(double value) { known_.amount = known_.exposure * value; }

 private:
  /// One direction in which the level may have left.
  struct Side {
    double evidence = 0;  ///< standard deviations beyond the slack, summed; never below 0
    Tally since;          ///< what came after the first observation that spoke for it: that may be half old
  };
  double standardised(double deviation);

  double alarm_;
  Tally known_;
  std::array<Side, 2> sides_;  ///< up, down
  double variance_ = 1;        ///< of the deviations, at least 1
};

}  // namespace signalbox::optimizer
