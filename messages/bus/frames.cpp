#include "messages/bus/frames.hpp"

#include "messages/bus/authority.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::bus {

namespace {

/// Clocks and ages beyond a century are no clocks; sums of a few stay within range.
constexpr Duration most_time = Duration(std::int64_t{1} << 61);

tl::unexpected<Refusal> refuse(Drop reason, std::string sender, Error why) {
  return tl::unexpected<Refusal>(Refusal{reason, std::move(sender), std::move(why)});
}

Error error(ErrorKind kind, std::string what, std::string_view topic) {
  return Error{kind, std::move(what), std::string(topic.substr(0, max_topic_bytes)), {}};
}

std::optional<Duration> decode_hop(FrameView frame) {
  std::uint64_t hop = 0;
  if (frame.size() != hop_bytes) return std::nullopt;
  for (std::size_t i = hop_bytes; i-- > 0;) hop = hop << 8 | frame[i];
  if (hop > static_cast<std::uint64_t>(most_time.count())) return std::nullopt;
  return Duration(static_cast<std::int64_t>(hop));
}

}  // namespace

std::array<std::uint8_t, hop_bytes> encode_hop(Duration hop) {
  std::array<std::uint8_t, hop_bytes> out;
  for (std::size_t i = 0; i < hop_bytes; ++i) out[i] = static_cast<std::uint8_t>(hop.count() >> (8 * i));
  return out;
}

tl::expected<Header, Refusal> read_header(Frames frames, const Directory* directory) {
  if (frames.size() < 4 || frames.size() > 5 || frames[0].size() > max_topic_bytes)
    return refuse(Drop::malformed, {}, error(ErrorKind::invalid, "not four or five frames with a topic", {}));
  Header out;
  out.topic = as_text(frames[0]);
  take_nonce(out.topic);

  auto envelope = codec::decode_envelope(frames[1]);
  if (!envelope) return refuse(Drop::malformed, {}, std::move(envelope.error()));
  out.envelope = std::move(*envelope);
  const std::string& source = out.envelope.source.str();
  if (out.envelope.sent < Duration::zero() || out.envelope.sent > most_time)
    return refuse(Drop::malformed, source,
                  error(ErrorKind::invalid, "sent at an impossible time", out.topic));
  if (frames.size() == 5) {
    out.hop = decode_hop(frames[4]);
    if (!out.hop)
      return refuse(Drop::malformed, source,
                    error(ErrorKind::invalid, "a hop frame that is no age", out.topic));
  }

  out.info = schema::find_info(out.envelope.kind);
  if (out.info == nullptr)
    return refuse(
        Drop::unknown_kind, source,
        error(ErrorKind::not_found, fmt::format("no message of kind {}", out.envelope.kind), out.topic));
  if (frames[2].size() > out.info->max_bytes)
    return refuse(
        Drop::too_large, source,
        error(ErrorKind::too_large,
              fmt::format("{} bytes, at most {}", frames[2].size(), out.info->max_bytes), out.topic));
  if (directory != nullptr) {
    out.member = directory->find(out.envelope.source);
    if (out.member == nullptr)
      return refuse(Drop::unknown_sender, {},
                    error(ErrorKind::denied, fmt::format("'{}' is no member", source), out.topic));
  }
  const Identity* identity = out.member == nullptr ? nullptr : &out.member->identity;
  if (auto status = check_author(*out.info, out.topic, out.envelope.source, identity); !status)
    return refuse(Drop::not_author, source, std::move(status.error()));
  return out;
}

}  // namespace signalbox::bus
