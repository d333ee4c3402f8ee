// How much slower than its declared curve an engine is: measured over predicted time per output token.
#pragma once

#include <optional>

#include "actors/engine_proxy/adapters/adapter.hpp"
#include "messages/base/time.hpp"
#include "optimizer/model/service_curve.hpp"

namespace signalbox::engine_proxy {

/// One measured step time with what the step had to do.
struct StepSample {
  double step_s = 0;          ///< measured mean time per output token
  double running = 0;         ///< mean batch
  double context_tokens = 0;  ///< held by the batch; 0 where unknown
  double prefill_per_s = 0;   ///< prompt tokens computed per second
};

/// What two successive good readings of one life say of the steps between them; nothing if the engine was idle, if too
/// few tokens came, or if the engine does not say. `declared_kv_tokens` stands in for a memory that it does not tell.
std::optional<StepSample> step_between(const Reading& before, const Reading& after, Duration between,
                                       double declared_kv_tokens);

/// Measured over predicted. With prefill at p tokens/s a step of T carries p*T of them, so
/// T = s * (a + b*N + k*C + c*p*T).
double slowness_of(const StepSample& sample, const optimizer::StepTime& declared);

/// The smoothed, bounded estimate. It is held as a logarithm: twice as slow and twice as fast weigh alike.
class Slowness {
 public:
  static constexpr double least = 0.05, most = 50;
  static constexpr double newest = 0.3;  ///< weight of the newest sample
  static constexpr Duration forget_half_life =
      60s;  ///< an idle engine drifts back to its declared curve, else one that
            ///< was slow once would never be tried again

  void observe(double ratio);
  void idle(Duration since_last);
  double value() const;
  std::uint64_t samples() const { return samples_; }

 private:
  double log_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace signalbox::engine_proxy
