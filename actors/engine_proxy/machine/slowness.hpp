// How much slower than the curve believed of it an engine is: measured over predicted time per output token.
#pragma once

#include <optional>

#include "actors/engine_proxy/adapters/adapter.hpp"
#include "messages/base/time.hpp"
#include "optimizer/model/level.hpp"
#include "optimizer/model/service_curve.hpp"

namespace signalbox::engine_proxy {

/// One measured step time with what the step had to do.
struct StepSample {
  double step_s = 0;           ///< measured mean time per output token
  double running = 0;          ///< mean batch
  double context_tokens = 0;   ///< held by the batch; 0 where unknown
  double prefill_tokens = 0;   ///< prompt tokens computed beside it
  double tokens = 0;           ///< output tokens that it is the mean of
  double steps = 0;            ///< steps that it is the mean of
  double computed_tokens = 0;  ///< of the prompts that were completed in it
  double prompts = 0;          ///< how many these were; where the engine does not say: taken as one
};

/// What two successive good readings of one life say of the steps between them; nothing if the engine was idle, if too
/// few tokens came, or if the engine does not say. `declared_kv_tokens` stands in for a memory that it does not tell.
/// An engine that counts its steps tells how many tokens of either kind one step had. Else the batch is taken as the mean
/// of the two readings and the prompts as spread over the time between them: right on average, off by 10 to 25 % in one
/// reading, since a prompt is often computed in one and paid for by the tokens of the next.
std::optional<StepSample> step_between(const Reading& before, const Reading& after, Duration between,
                                       double declared_kv_tokens);

/// The time per token that a curve predicts for what the step had to do: a + b*N + k*C + c*F.
double predicted_step_s(const StepSample& sample, const optimizer::StepTime& declared);

/// The bounded estimate: all measured over all predicted token time of the last while, or since it stepped.
class Slowness {
 public:
  static constexpr double least = 0.05, most = 50;
  static constexpr Duration memory = 20s;
  static constexpr Duration forget_half_life =
      60s;  ///< an idle engine drifts back to its curve, else one that
            ///< was slow once would never be tried again

  /// `predicted_s`: by the curve, of what the step had to do; `variance`: of the logarithm of that prediction. `between`:
  /// the time that the sample covers. True if the engine's speed has stepped.
  bool observe(const StepSample& sample, double predicted_s, double variance, Duration between);
  /// The curve has changed: it now predicts `factor` times as much as before.
  void rebase(double factor) { level_.move_to(level_.value() / factor); }
  void idle(Duration since_last);
  double value() const;
  std::uint64_t samples() const { return samples_; }

 private:
  optimizer::Level level_{8};
  std::uint64_t samples_ = 0;
};

}  // namespace signalbox::engine_proxy
