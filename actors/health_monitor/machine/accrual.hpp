// Accrued suspicion of somebody who speaks at a pace of his own: the longer the silence against his usual interval and
// its spread, the higher. After Hayashibara et al., The phi accrual failure detector, with a tail that is exponential
// and not Gaussian, so that one late word among punctual ones is no proof.
#pragma once

#include "messages/base/time.hpp"

namespace signalbox::health_monitor {

class Accrual {
 public:
  explicit Accrual(Instant since) : heard_at_(since) {}

  void heard(Instant at);
  /// Time in which we could not have heard: it is nobody's silence.
  void forgive(Duration lateness) { heard_at_ += lateness; }

  Duration silence(Instant now) const { return now - heard_at_; }
  /// -log10 of the chance that one who lives is silent for this long. Monotone in the silence; 0 at its start.
  double phi(Instant now) const;

 private:
  Instant heard_at_;
  bool spoke_ = false, paced_ = false;
  double mean_s_ = 1;       ///< of the intervals
  double deviation_s_ = 0;  ///< mean distance from it
};

}  // namespace signalbox::health_monitor
