// Hears the KV events of engines over ZeroMQ, on one thread: a SUB for each engine, a DEALER while it replays.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/engine_proxy/events/kv_follower.hpp"
#include "messages/base/result.hpp"

namespace signalbox::engine_proxy {

struct KvSource {
  std::string events;  ///< endpoint; with a * for its host the engines connect to it, else it is connected to
  std::string replay;  ///< endpoint; empty: nobody can be asked
  /// Told, on the listener's thread, of each state that is new; at most ten times a second, and at once when the cache was
  /// emptied.
  std::function<void(const KvState&)> tell;
};

class KvListener {
 public:
  explicit KvListener(std::vector<KvSource> sources);
  ~KvListener();
  /// Errors: invalid or io for an endpoint that ZeroMQ does not take.
  Status start();

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace signalbox::engine_proxy
