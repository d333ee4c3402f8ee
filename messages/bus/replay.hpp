// Values out of a cache, sent no faster than the peer takes them.
#pragma once

#include <string>
#include <zmq.hpp>

#include "messages/bus/last_values.hpp"

namespace signalbox::bus {

/// All values under a topic prefix, for one subscriber.
class Replay {
 public:
  enum class State : std::uint8_t { done, waiting };

  /// `nonce` is put before each topic as "@nonce/" unless it is empty.
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
