// What an engine counts. Meanings follow vLLM's metrics of the same name, so that /metrics only prints them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace signalbox::engine_sim {

/// Counts by upper bound, as Prometheus has them; values above the last bound are in count() only.
class Histogram {
 public:
  /// `bounds` ascend and outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size()) {}

  void observe(double value, std::uint64_t times = 1);
  std::span<const double> bounds() const { return bounds_; }
  /// Values in (bounds[i-1], bounds[i]].
  std::uint64_t in_bucket(std::size_t i) const { return counts_[i]; }
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

std::span<const double> first_token_bounds_s();
std::span<const double> inter_token_bounds_s();
std::span<const double> request_bounds_s();
std::span<const double> iteration_bounds_tokens();

struct Counters {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t finished_stop = 0;
  std::uint64_t finished_length = 0;
  std::uint64_t finished_cancelled = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;         ///< of requests whose prompt is complete, cached or not
  std::uint64_t prompt_tokens_cached = 0;  ///< of those, found in the prefix cache at first admission
  std::uint64_t generation_tokens = 0;
  std::uint64_t prefill_tokens = 0;  ///< computed, with what preemption made the engine compute again
  std::uint64_t prefix_queries = 0;  ///< tokens looked up in the prefix cache
  std::uint64_t prefix_hits = 0;     ///< tokens found there
  Histogram first_token_s{first_token_bounds_s()};
  Histogram inter_token_s{inter_token_bounds_s()};
  Histogram iteration_tokens{iteration_bounds_tokens()};  ///< a step: prompts completed in it, and output
  Histogram queue_s{request_bounds_s()};
  Histogram e2e_s{request_bounds_s()};
};

}  // namespace signalbox::engine_sim
