// How much slower than its declared curve an engine is: measured over predicted time per output token.
#pragma once

#include <optional>

#include "actors/engine_proxy/adapters/adapter.hpp"
#include "messages/base/time.hpp"
#include "optimizer/model/level.hpp"
#include "optimizer/model/service_curve.hpp"

namespace signalbox::engine_proxy {

/// One measured step time with what the step had to do.
struct StepSample {
  double step_s = 0;          ///< measured mean time per output token
  double running = 0;         ///< mean batch
  double context_tokens = 0;  ///< held by the batch; 0 where unknown
  double prefill_per_s = 0;   ///< prompt tokens computed per second
  double tokens = 0;          ///< output tokens that it is the mean of
};

/// What two successive good readings of one life say of the steps between them; nothing if the engine was idle, if too
/// few tokens came, or if the engine does not say. `declared_kv_tokens` stands in for a memory that it does not tell.
std::optional<StepSample> step_between(const Reading& before, const Reading& after, Duration between,
                                       double declared_kv_tokens);

/// The time per token that a curve predicts for what the step had to do. With prefill at p tokens/s a step of T carries
/// p*T of them, so T = a + b*N + k*C + c*p*T.
double predicted_step_s(const StepSample& sample, const optimizer::StepTime& declared);

/// The bounded estimate: all measured over all predicted token time of the last while, or since it stepped. A prompt
/// is often computed in one reading and paid for in the next: only the sums tell.
class Slowness {
 public:
  static constexpr double least = 0.05, most = 50;
  static constexpr Duration memory = 20s;
  static constexpr Duration forget_half_life =
      60s;  ///< an idle engine drifts back to its declared curve, else one that
            ///< was slow once would never be tried again

  /// `between`: the time that the sample covers.
  void observe(const StepSample& sample, const optimizer::StepTime& declared, Duration between);
  void idle(Duration since_last);
  double value() const;
  std::uint64_t samples() const { return samples_; }

 private:
  optimizer::Level level_{8};
  std::uint64_t samples_ = 0;
};

}  // namespace signalbox::engine_proxy
