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

  const double direction = answer.size() < 0 ? -1 : 1;
  for (const Sample& s : after) answer.beyond = std::max(answer.beyond, direction * (s.value - answer.final));
  const auto outside = std::find_if(after.rbegin(), after.rend(),
                                    [&](const Sample& s) { return std::abs(s.value - answer.final) > band; });
  if (outside == after.rend())
    answer.settled_after = after.front().at - step;
  else if (outside != after.rbegin())
    answer.settled_after = outside.base()->at - step;
  return answer;
}

std::vector<Sample> progress_of(std::span<const std::vector<Sample>> quantities, Instant step, double least) {
  std::vector<StepAnswer> answers;
  double squared = 0;
  for (const auto& samples : quantities) {
    answers.push_back(answer_to_step(samples, step, 0));
    squared += answers.back().size() * answers.back().size();
  }
  std::vector<Sample> progress;
  if (squared < least * least || quantities.empty()) return progress;
  for (std::size_t s = 0; s < quantities.front().size(); ++s) {
    Sample& sum = progress.emplace_back(Sample{quantities.front()[s].at, 0});
    for (std::size_t q = 0; q < quantities.size(); ++q)
      sum.value += (quantities[q][s].value - answers[q].before) * answers[q].size() / squared;
  }
  return progress;
}

}  // namespace signalbox::simulate
