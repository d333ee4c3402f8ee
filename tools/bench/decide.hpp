// What decide() costs, in nanoseconds, for fleets of 10 to 10,000 engines.
#pragma once

#include <cstddef>

namespace signalbox::bench {

/// Prints a JSON list, one row per size; medians over batches of 16.
void bench_decide(std::size_t decisions);

}  // namespace signalbox::bench
