// How a quantity answered a step: where it went, how fast, how far beyond, and how often it turned.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "messages/base/time.hpp"

namespace signalbox::simulate {

struct Sample {
  Instant at;
  double value = 0;
};

struct StepAnswer {
  double before = 0;  ///< mean of the samples before the step
  double final = 0;   ///< mean of the last quarter of the samples after it
  double beyond = 0;  ///< how far past `final` it was at most, seen from `before`, in the value's unit
  std::uint32_t reversals = 0;  ///< turns of direction greater than the dead band
  std::optional<Duration>
      settled_after;  ///< from the step until it stays within the band; nothing: it never does

  double size() const { return final - before; }
  /// `beyond` as a share of the step; 0 without a step.
  double overshoot() const { return size() != 0 ? beyond / std::abs(size()) : 0; }
};

/// `samples` ascend in time. `band`: half-width around `final` that counts as settled, in the value's unit; also the dead
/// band of reversals.
StepAnswer answer_to_step(std::span<const Sample> samples, Instant step, double band);

/// Several quantities that step together, as one: how far they have come along the straight line from where they were to
/// where they end, 0 before and 1 at the end. Empty if they do not move by `least` in all (Euclidean distance).
/// All have samples of the same instants.
std::vector<Sample> progress_of(std::span<const std::vector<Sample>> quantities, Instant step, double least);

/// Turns of direction: moves of more than `dead_band` away from the last extreme, against the move before.
std::uint32_t count_reversals(std::span<const Sample> samples, double dead_band);

}  // namespace signalbox::simulate
