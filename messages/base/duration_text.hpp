// Durations as people write them.
#pragma once

#include <string>
#include <string_view>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"

namespace signalbox {

/// "250ms", "1.5s", "2min", "1h", "50us", with at most one space before the unit; rounded to microseconds. Errors: no unit,
/// another unit, a negative or over-long duration (more than 10 years).
Result<Duration> parse_duration(std::string_view text);

/// In the greatest of s, ms, us that leaves no fraction: "90s", "1500ms". Rounded to microseconds.
std::string duration_text(Duration duration);

}  // namespace signalbox
