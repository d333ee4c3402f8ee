// Text in JSON, for whoever writes JSON by hand.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace signalbox {

/// Length of the UTF-8 sequence at the front of `text`, or 0 if there is none. (Unicode 15, table 3-7.)
std::size_t utf8_length(std::string_view text);

/// Text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
void append_json_string(std::string& out, std::string_view text);

}  // namespace signalbox
