// Takes the gateway's batches as they come and hands them to the actor.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "messages/base/time.hpp"

namespace signalbox::cluster_router {

class Pump {
 public:
  /// Calls `turn` each `period` on a thread of its own.
  Pump(Duration period, std::function<void()> turn)
      : thread_([period, turn = std::move(turn)](std::stop_token stop) {
          std::mutex mutex;
          std::condition_variable_any wake;
          std::unique_lock lock(mutex);
          for (bool last = false; !last;) {  // what comes until the stop is taken too
            last = stop.stop_requested();
            if (!last) wake.wait_for(lock, stop, period, [] { return false; });
            turn();
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace signalbox::cluster_router
