// What decide() costs, in nanoseconds, for fleets of 10 to 10,000 engines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace signalbox::bench {

/// Prints a JSON list, one row per size; medians over batches of 16.
void bench_decide(std::size_t decisions);

/// Decides so often for a fleet of so many engines, for whoever counts what that costs. Returns something that depends on all of it.
std::uint64_t decide_often(std::size_t engines, std::size_t times);

}  // namespace signalbox::bench
