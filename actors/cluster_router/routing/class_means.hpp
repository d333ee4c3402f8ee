// What requests of a class are like, from those that were served here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "actors/cluster_router/routing/decide.hpp"
#include "actors/cluster_router/routing/request.hpp"

namespace signalbox::routing {

/// A mean that forgets: of all values at first, later of about the last 200.
class SmoothedMean {
 public:
  void add(double x) {
    samples_ = std::min(samples_ + 1, 200u);
    value_ += (x - value_) / samples_;
  }
  /// The mean once enough was seen, else the prior.
  double or_else(double prior) const { return samples_ >= 20 ? value_ : prior; }
  /// The mean of whatever was seen; 0 before.
  double value() const { return value_; }

 private:
  double value_ = 0;
  std::uint32_t samples_ = 0;
};

/// A high quantile of times, followed by small steps of its logarithm (Robbins and Monro 1951): a time above it raises it
/// by q steps, one below lowers it by 1 - q.
class TailTime {
 public:
  void add(double took_s, double q) {
    if (!(took_s > 0)) return;
    const double log = std::log(took_s);
    if (samples_++ == 0) log_ = log;
    move(log > log_, q);
  }
  /// A time that was not waited for, but is above the quantile.
  void above(double q) { move(true, q); }
  /// Nothing before enough was seen.
  std::optional<double> value_s() const {
    return samples_ >= 20 ? std::optional(std::exp(log_)) : std::nullopt;
  }

 private:
  void move(bool is_above, double q) { log_ += step * (is_above ? q : q - 1); }
  static constexpr double step = 0.2;
  double log_ = 0;
  std::uint64_t samples_ = 0;
};

/// The request as the policy sees it.
inline policy::RequestAttributes attributes_of(const RequestFacts& facts) {
  return {facts.tenant,
          facts.model,
          facts.version,
          facts.asked,
          facts.session_hash,
          static_cast<std::uint64_t>(facts.estimated_prompt_tokens()) + facts.max_output_tokens};
}

/// Tokens per request of one class.
struct ClassMeans {
  SmoothedMean prompt;
  SmoothedMean uncached;
  SmoothedMean output;
  SmoothedMean prompt_bytes_per_token;
  TailTime first_byte[2];  ///< of whole answers, of streams; only while the policy hedges

  /// The request in numbers: own means, before these the plan's, before these guesses.
  Ask ask(const RequestFacts& facts, const ClassTable& plan, double block_bytes) const {
    constexpr double guessed_output = 256;
    const double per_token = prompt_bytes_per_token.or_else(bytes_per_token);
    const auto bytes = static_cast<double>(facts.prompt_bytes);
    const double prompt_tokens =
        facts.prompt_tokens ? static_cast<double>(*facts.prompt_tokens) : bytes / per_token;
    double output_tokens =
        output.or_else(std::isnan(plan.output_tokens) ? guessed_output : plan.output_tokens);
    if (facts.max_output_tokens > 0)
      output_tokens = std::min(output_tokens, static_cast<double>(facts.max_output_tokens));
    output_tokens = std::max(1.0, output_tokens);

    Ask ask;
    ask.prompt_tokens = static_cast<float>(prompt_tokens);
    ask.output_tokens = static_cast<float>(output_tokens);
    ask.context_tokens = static_cast<float>(prompt.or_else(prompt_tokens) + 0.5 * output_tokens);
    ask.uncached_tokens = static_cast<float>(
        uncached.or_else(std::isnan(plan.uncached_tokens) ? prompt_tokens : plan.uncached_tokens));
    ask.block_tokens =
        static_cast<float>(bytes > 0 ? prompt_tokens * block_bytes / bytes : block_bytes / per_token);
    return ask;
  }
};

}  // namespace signalbox::routing
