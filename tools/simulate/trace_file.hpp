// Recorded traces: Mooncake's JSON lines (timestamp in ms, input_length, output_length, hash_ids of 512-token blocks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/simulate/world/scenario.hpp"

namespace signalbox::simulate {

/// The first `most` rows, `speed` times as fast as recorded. Errors: io, or invalid with file and line.
Result<std::vector<TraceRow>> read_trace(const std::string& file, double speed, std::uint64_t most);

}  // namespace signalbox::simulate
