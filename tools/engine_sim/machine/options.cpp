#include "tools/engine_sim/machine/options.hpp"

#include <cmath>

namespace signalbox::engine_sim {

Status check(const EngineOptions& o) {
  const StepCurve& curve = o.curve;
  for (const double coefficient :
       {curve.a_s, curve.b_s_per_sequence, curve.k_s_per_context_token, curve.c_s_per_prefill_token})
    if (!std::isfinite(coefficient) || coefficient < 0)
      return invalid("a step-time coefficient is negative or not finite", "curve");
  if (curve.a_s < 1e-6) return invalid("a step takes no time", "curve.a", "use at least 1e-6 s");
  if (!(o.speed > 0) || !std::isfinite(o.speed)) return invalid("the speed is not positive", "speed");
  if (!(o.step_noise >= 0 && o.step_noise <= 1))
    return invalid("the step noise is outside 0..1", "step_noise");
  if (o.block_tokens == 0) return invalid("a block holds no token", "block_tokens");
  if (o.kv_blocks == 0) return invalid("there is no KV memory", "kv_blocks");
  if (o.max_batch == 0) return invalid("the batch is empty", "max_batch");
  if (o.chunk_tokens == 0) return invalid("prefill chunks are empty", "chunk_tokens");
  if (o.step_tokens <= o.max_batch)
    return invalid("a full batch leaves no token for prefill", "step_tokens", "use more than max_batch");
  return {};
}

}  // namespace signalbox::engine_sim
