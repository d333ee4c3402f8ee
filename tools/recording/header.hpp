// What a recording says of itself: which fleet, when, and in which versions of which messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"

namespace signalbox::recording {

/// A message type as the recorder knew it.
struct RecordedKind {
  std::uint16_t kind = 0;
  std::uint16_t version = 0;
  std::string name;
};

struct Header {
  std::string fleet;
  Instant began{};        ///< by the recorder's monotonic clock, which times every message of the file
  Duration began_wall{};  ///< since 1970, at `began`
  std::string filter;     ///< what was recorded, as the command line said it; empty: everything
  std::string config;     ///< the fleet's configuration file as text, so that the file can be read anywhere
  std::uint16_t port_base = 0;
  std::vector<RecordedKind> kinds;
};

/// All message types of this build.
std::vector<RecordedKind> kinds_of_this_build();

std::string to_text(const Header& header);
/// Errors: invalid.
Result<Header> parse_header(std::string_view text);

/// What of the recording this build cannot show: kinds that it does not know, and later versions; empty: nothing.
std::string unknown_to_this_build(const Header& header);

}  // namespace signalbox::recording
