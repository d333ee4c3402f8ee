// Terms and the epoch. A term's counter holds the fleet's epoch, less one, in its high 32 bits, so that raising fleet_epoch in the
// configuration outranks every term there was; within an epoch a jump of more than 1,000 is not believed.
#pragma once

#include <cstdint>

#include "messages/base/ids.hpp"

namespace signalbox::kit {

inline constexpr std::uint64_t most_term_jump = 1000;

/// Epochs count from 1.
constexpr std::uint64_t epoch_of(std::uint64_t counter) { return (counter >> 32) + 1; }
/// The counter before the first one of this epoch.
constexpr std::uint64_t first_counter(std::uint64_t epoch) { return epoch > 0 ? (epoch - 1) << 32 : 0; }

/// Whether a process that runs with `epoch` and knows `known` (0: nothing) may believe in this counter.
bool is_plausible(std::uint64_t counter, std::uint64_t known, std::uint64_t epoch);

}  // namespace signalbox::kit
