// How a quantity answered a step: where it went, how fast, how far beyond, and how often it turned.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "messages/base/time.hpp"

namespace signalbox::simulate {

struct Sample {
  Instant at;
  double value = 0;
};

struct StepAnswer {
  double before = 0;  ///< mean of the samples before the step
  double final = 0;   ///< mean of the last quarter of the samples after it
  double overshoot =
      0;  ///< farthest beyond `final`, seen from `before`, as a share of the step |final - before|
  std::uint32_t reversals = 0;  ///< turns of direction greater than the dead band
  std::optional<Duration>
      settled_after;  ///< from the step until it stays within the band; nothing: it never does
};

/// `samples` ascend in time. `band`: half-width around `final` that counts as settled, in the value's unit; also the dead
/// band of reversals.
StepAnswer answer_to_step(std::span<const Sample> samples, Instant step, double band);

/// Turns of direction: moves of more than `dead_band` away from the last extreme, against the move before.
std::uint32_t count_reversals(std::span<const Sample> samples, double dead_band);

}  // namespace signalbox::simulate
