#include "tools/simulate/world/settling.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::simulate {
namespace {

double mean(std::span<const Sample> samples) {
  double sum = 0;
  for (const Sample& s : samples) sum += s.value;
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

}  // namespace

std::uint32_t count_reversals(std::span<const Sample> samples, double dead_band) {
  if (samples.empty()) return 0;
  std::uint32_t reversals = 0;
  int direction = 0;                               // of the last move beyond the dead band
  double low = samples.front().value, high = low;  // extremes since that move
  for (const Sample& s : samples) {
    low = std::min(low, s.value), high = std::max(high, s.value);
    const int move = s.value > low + dead_band && direction <= 0    ? 1
                     : s.value < high - dead_band && direction >= 0 ? -1
                                                                    : 0;
    if (move == 0) continue;
    reversals += direction != 0;
    direction = move;
    low = high = s.value;
  }
  return reversals;
}

StepAnswer answer_to_step(std::span<const Sample> samples, Instant step, double band) {
  const auto split =
      std::find_if(samples.begin(), samples.end(), [&](const Sample& s) { return s.at >= step; });
  const std::span before(samples.begin(), split), after(split, samples.end());
  StepAnswer answer;
  answer.before = mean(before);
  if (after.empty()) return answer;
  answer.final = mean(after.last(std::max<std::size_t>(1, after.size() / 4)));
  answer.reversals = count_reversals(after, band);

  const double size = answer.final - answer.before;
  for (const Sample& s : after)
    if (std::abs(size) > 0) answer.overshoot = std::max(answer.overshoot, (s.value - answer.final) / size);
  const auto outside = std::find_if(after.rbegin(), after.rend(),
                                    [&](const Sample& s) { return std::abs(s.value - answer.final) > band; });
  if (outside == after.rend())
    answer.settled_after = after.front().at - step;
  else if (outside != after.rbegin())
    answer.settled_after = outside.base()->at - step;
  return answer;
}

}  // namespace signalbox::simulate
