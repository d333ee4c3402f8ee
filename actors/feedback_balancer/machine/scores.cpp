#include "actors/feedback_balancer/machine/scores.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::feedback_balancer {

namespace {
/// The most that one period may raise or lower a weight by.
constexpr double most_factor = 5;
/// Weights stay above this share, so that an engine that was thought full can show otherwise.
constexpr double least_weight = 0.002;

void normalise(std::vector<Place>& row) {
  double sum = 0;
  for (const Place& place : row) sum += place.weight;
  if (sum > 0)
    for (Place& place : row) place.weight /= sum;
}
}  // namespace

void Scores::observe(const std::vector<double>& loads) {
  const double share = started_ ? tuning_.smoothing : 1.0;
  started_ = true;
  for (std::size_t i = 0; i < smoothed_.size(); ++i)
    if (std::isfinite(loads[i])) smoothed_[i] += share * (loads[i] - smoothed_[i]);
  history_.push_back(smoothed_);
  while (history_.size() > tuning_.delay + 1) history_.pop_front();
}

void nudge(std::vector<Place>& row, const std::vector<double>& scores, double gain) {
  double serving = 0, average = 0;
  for (const Place& place : row)
    if (place.serves) ++serving, average += scores[place.engine];
  if (serving == 0) {
    for (Place& place : row) place.weight = 0;
    return;
  }
  average /= serving;
  for (Place& place : row) {
    if (!place.serves) {
      place.weight = 0;
      continue;
    }
    if (place.weight <= 0) place.weight = 1 / serving;
    if (average <= 0) continue;
    const double factor = 1 + gain * (average - scores[place.engine]) / average;
    place.weight *= std::clamp(factor, 1 / most_factor, most_factor);
  }
  normalise(row);
  for (Place& place : row)
    if (place.serves) place.weight = std::max(place.weight, least_weight);
  normalise(row);
}

}  // namespace signalbox::feedback_balancer
