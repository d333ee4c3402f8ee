// A client that sends exactly the bytes it is told to, on the same thread as the loop under test.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <string_view>

#include "actors/cluster_router/net/loop.hpp"
#include "actors/cluster_router/net/stream.hpp"

namespace signalbox::net {

/// Turns the loop until `done`; false when it is not within `limit`. A bound on a wait for real sockets, not
/// a pause.
inline bool turn_until(Loop& loop, const std::function<bool()>& done, Duration limit = 10s) {
  loop.turn(Duration::zero());
  const Instant deadline = loop.now() + limit;
  while (!done()) {
    if (loop.now() >= deadline) return false;
    loop.turn(5ms);
  }
  return true;
}

class RawClient {
 public:
  RawClient(Loop& loop, std::uint16_t port) : loop_(loop) {
    auto fd = start_connect(*resolve("127.0.0.1", port));
    stream_ = plain_stream(std::move(*fd));
    turn_until(loop_, [this] { return connect_error(stream_->fd()) == 0; });
  }

  /// Sends all of it, turning the loop while the socket is full.
  void send(std::string_view bytes) {
    turn_until(loop_, [&] {
      if (bytes.empty()) return true;
      const IoResult put = stream_->write(bytes);
      if (put.state == Io::failed) return true;
      if (put.state == Io::done) bytes.remove_prefix(put.bytes);
      return bytes.empty();
    });
  }
  /// Reads what is there into `received`.
  void poll() {
    if (closed || reset) return;
    char buffer[16384];
    for (;;) {
      const IoResult got = stream_->read(buffer);
      if (got.state == Io::done)
        received.append(buffer, got.bytes);
      else
        return void((closed = got.state == Io::ended, reset = got.state == Io::failed));
    }
  }
  /// Turns the loop until `text` was received.
  bool receives(std::string_view text, Duration limit = 10s) {
    return turn_until(
        loop_, [&] { return poll(), received.find(text) != std::string::npos; }, limit);
  }
  /// Turns the loop until the server ended the connection, in order or not.
  bool sees_end(Duration limit = 10s) {
    return turn_until(
        loop_, [&] { return poll(), closed || reset; }, limit);
  }
  void leave() { stream_.reset(); }
  void leave_by_reset() {
    stream_->make_close_a_reset();
    stream_.reset();
  }
  Stream& stream() { return *stream_; }

  std::string received;
  bool closed = false;
  bool reset = false;

 private:
  Loop& loop_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace signalbox::net
