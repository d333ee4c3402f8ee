// Recorded traces: Mooncake's JSON lines (timestamp in ms, input_length, output_length, hash_ids of 512-token blocks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/simulate/world/scenario.hpp"

namespace signalbox::simulate {

struct TraceOptions {
  double speed = 1;                 ///< so many times as fast as recorded
  std::uint64_t most = UINT64_MAX;  ///< the first rows only
  Duration
      bucket{};  ///< the recording rounds times down to multiples of this: rows of one time are spread evenly over it
};

/// Errors: io, or invalid with file and line.
Result<std::vector<TraceRow>> read_trace(const std::string& file, const TraceOptions& options);

}  // namespace signalbox::simulate
