// What an engine is: its step time, its memory, its limits. The unit of work is one forward step of
// continuous batching.
#pragma once

#include <cstddef>
#include <cstdint>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"

namespace signalbox::engine_sim {

/// Seconds of one step: a + b * decoding sequences + k * their context tokens + c * prefill tokens.
/// The shape is fitted to measured engines in tests/data/aiconfigurator; prefill is linear in its tokens.
struct StepCurve {
  double a_s = 0.008;
  double b_s_per_sequence = 0.0002;
  double k_s_per_context_token = 1.0e-8;
  double c_s_per_prefill_token = 0.00004;

  double seconds(std::size_t decoding, std::size_t context_tokens, std::size_t prefill_tokens) const {
    return a_s + b_s_per_sequence * static_cast<double>(decoding) +
           k_s_per_context_token * static_cast<double>(context_tokens) +
           c_s_per_prefill_token * static_cast<double>(prefill_tokens);
  }
};

struct EngineOptions {
  StepCurve curve;
  double speed = 1.0;               ///< divides every step's time
  double step_noise = 0.0;          ///< standard deviation of the logarithm of a step's time
  std::uint32_t block_tokens = 16;  ///< tokens of one KV block
  std::uint32_t kv_blocks = 16384;  ///< KV memory; all sequences in the batch live in it
  std::uint32_t max_batch = 256;    ///< sequences in the batch, prefilling or decoding
  std::uint32_t step_tokens =
      8192;  ///< token budget of a step: one per decoding sequence, the rest is prefill
  std::uint32_t chunk_tokens = 2048;  ///< most prefill tokens of one sequence in a step
  std::uint32_t max_waiting = 4096;   ///< longer queues refuse
  bool prefix_caching = true;
  bool report_tokens = true;   ///< an event for every token, not only for each first one
  bool report_blocks = false;  ///< events for blocks that enter and leave the prefix cache
};

/// Refuses what no engine can be: empty memory, a batch over the step's budget, a step that takes no time.
Status check(const EngineOptions& options);

/// Injected faults that the batching machine itself feels.
struct Faults {
  double slowness = 1.0;  ///< multiplies every step's time
  bool frozen = false;    ///< no step makes progress; requests are still accepted
};

}  // namespace signalbox::engine_sim
