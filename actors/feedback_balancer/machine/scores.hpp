// The legacy loop's arithmetic: engines report load, a smoothed score is compared with the average of those that serve
// the same class, and each weight is nudged against the distance. It sees no whole: no capacity, no demand, no network.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace signalbox::feedback_balancer {

struct Tuning {
  double gain = 0.5;       ///< share of the relative distance from the average by which a weight moves; > 0
  double smoothing = 0.3;  ///< weight of the newest score, (0, 1]
  std::size_t delay = 0;   ///< periods by which the scores that are acted on lag
};

/// Smoothed scores of all engines, by EngineIndex, and how they were `delay` periods ago.
class Scores {
 public:
  Scores(std::size_t engines, Tuning tuning) : tuning_(tuning), smoothed_(engines, 0.0) {}

  /// One period's loads, as shares of what each engine can hold; NaN: unknown, its score stays.
  void observe(const std::vector<double>& loads);
  /// The scores to act on; the oldest known while there are fewer than `delay` periods.
  const std::vector<double>& acted_on() const { return history_.empty() ? smoothed_ : history_.front(); }

 private:
  Tuning tuning_;
  std::vector<double> smoothed_;
  bool started_ = false;
  std::deque<std::vector<double>> history_;
};

/// One engine's place in a row.
struct Place {
  std::size_t engine = 0;
  double weight = 0;
  bool serves = true;  ///< its verdict lets it have new requests
};

/// Nudges a row: w *= 1 + gain * (average - score) / average, within a factor of 5. Engines that do not serve get 0, and
/// one that is back gets the mean weight. Weights sum to 1, or are all 0 if nobody serves.
void nudge(std::vector<Place>& row, const std::vector<double>& scores, double gain);

}  // namespace signalbox::feedback_balancer
