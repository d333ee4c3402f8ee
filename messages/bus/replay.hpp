// Values out of a cache, sent no faster than the peer takes them.
#pragma once

#include <string>
#include <zmq.hpp>

#include "messages/bus/last_values.hpp"

namespace signalbox::bus {

/// The five frames of a value out of a cache; they point into the value.
class ValueFrames {
 public:
  /// `topic`: the value's own unless given.
  ValueFrames(const LastValues::Value& value, Instant now, std::string_view topic = {})
      : hop_(encode_hop(value.age(now))),
        frames_{as_frame(topic.empty() ? std::string_view(value.topic) : topic), value.envelope, value.body,
                value.proof, hop_} {}
  ValueFrames(const ValueFrames&) = delete;
  Frames frames() const { return frames_; }

 private:
  std::array<std::uint8_t, hop_bytes> hop_;
  std::array<FrameView, 5> frames_;
};

/// All values under a topic prefix, for the one subscriber that uses this nonce.
class Replay {
 public:
  enum class State : std::uint8_t { done, waiting };

  Replay(std::string nonce, std::string prefix) : nonce_(std::move(nonce)), prefix_(std::move(prefix)) {}

  /// Sends on until nothing is left, the peer's queue is full, or `most` are sent; adds what it sent to `sent`.
  State step(LastValues& values, zmq::socket_t& xpub, Instant now, std::size_t most, std::uint64_t& sent);
  bool is_for(std::string_view nonce, std::string_view prefix) const {
    return nonce == nonce_ && prefix == prefix_;
  }

 private:
  std::string nonce_;
  std::string prefix_;
  std::string after_;
};

}  // namespace signalbox::bus
