// What a command does that serves until somebody ends it.
#pragma once

#include <string>

#include "actors/cluster_router/net/server.hpp"

namespace signalbox::net {

/// While it lives SIGINT and SIGTERM stop the loop, and a reader of the output that leaves does not end the process. One
/// at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(Loop& loop);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
};

/// "HOST:PORT" at which a server that was asked to listen at `asked` does, whose port may have been 0.
std::string listening_at(const Address& asked, const HttpServer& server);

}  // namespace signalbox::net
