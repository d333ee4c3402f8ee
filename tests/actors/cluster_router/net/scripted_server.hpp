// A server that accepts connections on the loop under test and lets the test say each byte of its answers.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/actors/cluster_router/net/raw_client.hpp"

namespace signalbox::net {

class ScriptedServer {
 public:
  struct Peer {
    std::unique_ptr<Stream> stream;
    std::string received;
    bool closed = false;  ///< the other side ended or reset the connection
    void poll() {
      char buffer[16384];
      while (stream && !closed) {
        const IoResult got = stream->read(buffer);
        if (got.state == Io::done)
          received.append(buffer, got.bytes);
        else if (got.state == Io::would_block)
          return;
        else
          closed = true;
      }
    }
    void say(std::string_view bytes) { stream->write(bytes); }
    void hang_up() { stream.reset(); }
    void reset() {
      stream->make_close_a_reset();
      stream.reset();
    }
  };

  explicit ScriptedServer(Loop& loop)
      : loop_(loop), listener_(std::move(*listen_on(*resolve("127.0.0.1", 0), false))) {}

  Address address() const { return *local_address(listener_); }
  /// Accepts and reads what there is.
  void poll() {
    if (!listener_.valid()) return;
    for (;;) {
      Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) break;
      peers.push_back(std::make_unique<Peer>());
      peers.back()->stream = plain_stream(std::move(fd));
    }
    for (auto& peer : peers) peer->poll();
  }
  /// Turns the loop until the connection `index` exists and has received `text`.
  bool hears(std::size_t index, std::string_view text) {
    return turn_until(loop_, [&] {
      return poll(), index < peers.size() && peers[index]->received.find(text) != std::string::npos;
    });
  }
  bool sees_close(std::size_t index) {
    return turn_until(loop_, [&] { return poll(), index < peers.size() && peers[index]->closed; });
  }
  /// From now on connections are refused.
  void refuse() { listener_.reset(); }

  std::vector<std::unique_ptr<Peer>> peers;

 private:
  Loop& loop_;
  Fd listener_;
};

}  // namespace signalbox::net
