// Finds the engine whose answers come later than its curve says while those of the others do not.
//
// Per engine the logarithm of real over expected time is smoothed. An engine is compared with the mean of the others, so
// that what slows all of them down (a wrong curve, overload) makes nobody an outlier. What a signal explains is in
// the curve already, and is held against nobody twice.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "messages/base/ids.hpp"

namespace signalbox::routing {

class Lateness {
 public:
  /// `from[i]` is the old row of engine i, or none.
  void remap(const std::vector<EngineIndex>& from) {
    std::vector<PerEngine> engines(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i].valid()) engines[i] = engines_[from[i].at()];
    engines_ = std::move(engines);
    sum_ = 0, known_ = 0;
    for (const PerEngine& e : engines_)
      if (e.answers >= enough) sum_ += share_of(e), ++known_;
  }
  /// A new life starts with a clean record.
  void forget(EngineIndex engine) {
    PerEngine& e = engines_[engine.at()];
    if (e.answers >= enough) sum_ -= share_of(e), --known_;
    e = {};
  }
  /// An answer took so long, counted from its attempt's begin. True if that is late, beside what the others do.
  bool late(EngineIndex engine, double took_s, double expected_s) {
    if (!(expected_s > 0) || !(took_s > 0)) return false;
    PerEngine& e = engines_[engine.at()];
    const double log_ratio = std::log(took_s / expected_s);
    const bool was_known = e.answers >= enough;
    if (was_known) sum_ -= share_of(e), --known_;
    if (was_known) learn_spread(log_ratio - e.log_ratio);
    ++e.answers;
    e.log_ratio += (e.answers < enough ? 1.0 / e.answers : smoothing) * (log_ratio - e.log_ratio);
    const std::uint32_t others = known_;
    const double usual = others > 0 ? sum_ / others : 0.0;
    if (e.answers >= enough) sum_ += share_of(e), ++known_;
    const double spread = std::sqrt(variance_);
    return others >= few_others && e.answers >= enough &&
           log_ratio - usual > std::max(one_answer, deviations * spread) &&
           e.log_ratio - usual > std::max(on_average, deviations * spread_of_mean * spread) &&
           took_s - expected_s > not_worth_s;
  }

 private:
  static constexpr std::uint32_t enough = 5, few_others = 2;
  static constexpr double smoothing = 0.2;
  static constexpr double one_answer = 1.1;   ///< three times as late as usual
  static constexpr double on_average = 0.7;   ///< twice
  static constexpr double not_worth_s = 0.1;  ///< what is less is nobody's concern
  static constexpr double deviations = 3;     ///< of the noise
  /// Of a smoothed mean, as a share of that of one answer: sqrt(w / (2 - w)).
  static constexpr double spread_of_mean = 1.0 / 3;
  static constexpr double newest = 0.01;  ///< weight of one answer in the variance
  static constexpr double least_variance = 0.04;
  struct PerEngine {
    double log_ratio = 0;
    std::uint32_t answers = 0;
  };
  /// What is beyond three deviations counts as these: one engine's trouble is not everybody's noise.
  void learn_spread(double deviation) {
    const double square =
        std::min(deviation * deviation, deviations * deviations * std::max(variance_, least_variance));
    variance_ += newest * (square - variance_);
  }
  /// An engine that is far faster than its curve makes the others no later.
  static double share_of(const PerEngine& e) { return e.log_ratio > -on_average ? e.log_ratio : -on_average; }

  std::vector<PerEngine> engines_;
  double sum_ = 0;       ///< of the engines with enough answers
  double variance_ = 0;  ///< of one answer's logarithm around its engine's mean
  std::uint32_t known_ = 0;
};

}  // namespace signalbox::routing
