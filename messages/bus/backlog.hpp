// What a socket has received and nobody has looked at yet.
//
// libzmq must not bound this itself: while a receiving queue of its is full, a connection that breaks, or whose ping
// falls due, makes 4.3.4 abort the process (`_io_error`, `_input_stopped`; docs/decisions/bus.md). So its queues have no
// bound, and are emptied into this one at each turn of their thread.
#pragma once

#include <deque>

#include "messages/bus/sockets.hpp"

namespace signalbox::bus {

class Backlog {
 public:
  Backlog(std::size_t most_messages, std::size_t most_bytes)
      : most_messages_(most_messages), most_bytes_(most_bytes) {}

  /// Reads what has arrived. How many of the oldest messages went because there was no room.
  std::uint64_t fill(zmq::socket_t& socket);
  /// False if there is none.
  bool take(Parts& out);
  bool empty() const { return parts_.empty(); }

 private:
  void drop_oldest();

  std::size_t most_messages_;
  std::size_t most_bytes_;
  std::deque<Parts> parts_;
  std::size_t bytes_ = 0;
};

}  // namespace signalbox::bus
