// ZeroMQ sockets as every process of the bus sets them. Functions throw zmq::error_t as the library does.
#pragma once

#include <array>
#include <vector>
#include <zmq.hpp>

#include "messages/bus/frames.hpp"
#include "messages/bus/keys.hpp"

namespace signalbox::bus {

/// The clock of all instants on the bus: CLOCK_MONOTONIC.
Instant clock_now();
/// Since 1970.
Duration wall_now();

struct SocketSettings {
  Duration heartbeat;
  Duration heartbeat_timeout;
  Duration linger{};
};

zmq::socket_t open_socket(zmq::context_t& context, zmq::socket_type type, const SocketSettings& settings);
/// To be called before the socket is bound or connected there: an address of IPv6, or a name that stands for one, is
/// then understood.
void prepare_for(zmq::socket_t& socket, std::string_view endpoint);
/// Only keys that the ZAP handler of this context knows get in; without a handler nobody does.
void secure_as_server(zmq::socket_t& socket, const Keyring& keyring);
void secure_as_client(zmq::socket_t& socket, const Keyring& keyring, const Key32& server_public);

/// The parts of one message.
class Parts {
 public:
  /// False if nothing is there. More parts than a message has are read and forgotten, but counted.
  bool receive(zmq::socket_t& socket);
  /// Valid until the parts are moved, or changed.
  Frames frames() const;
  std::size_t bytes() const;
  /// As a frame count that frames() would hide: over `most` the message is malformed.
  bool overlong() const { return count_ > most; }
  /// Sends them on; they are empty afterwards. Never blocks.
  void forward(zmq::socket_t& socket);
  /// The id that the ZAP handler gave to the sender's key; empty if none.
  std::string user_id() const;

 private:
  static constexpr std::size_t most = 5;
  std::array<zmq::message_t, most> parts_;
  mutable std::array<FrameView, most> views_;  // made by frames(): short parts lie in parts_ itself
  std::size_t count_ = 0;
};

/// Sends a message, or nothing of it: false if the peer's queue is full (an XPUB only says so under NODROP).
bool send_frames(zmq::socket_t& socket, Frames frames);

/// Blocks all signals in this thread, so that they reach the main one, and names it.
void settle_thread(const char* name);

/// Wakes a poll; may be written from any thread.
class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  void wake();
  void clear();
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace signalbox::bus
