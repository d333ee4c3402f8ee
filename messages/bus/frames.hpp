// The frames of a message, read as far as a forwarder reads them: all but the body.
#pragma once

#include <optional>
#include <string_view>

#include "messages/bus/drop.hpp"
#include "messages/bus/keys.hpp"
#include "messages/bus/node.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::bus {

struct Header {
  std::string_view topic;  ///< without the nonce; lies in the frames
  const schema::MessageInfo* info = nullptr;
  schema::Envelope envelope;
  const Member* member = nullptr;  ///< nullptr where security is none
  std::optional<Duration> hop;     ///< age in caches
};

struct Refusal {
  Drop reason;
  std::string sender;  ///< as claimed; empty if it could not be read
  Error why;
};

/// Topic, envelope, sizes and the right of the source to speak on that topic, checked against the directory
/// (nullptr: security none).
tl::expected<Header, Refusal> read_header(Frames frames, const Directory* directory);

/// Longest topic with its nonce, in bytes.
inline constexpr std::size_t max_topic_bytes = 512;
inline constexpr std::size_t hop_bytes = 8;

std::array<std::uint8_t, hop_bytes> encode_hop(Duration hop);

inline std::string_view as_text(FrameView frame) {
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}
inline FrameView as_frame(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace signalbox::bus
