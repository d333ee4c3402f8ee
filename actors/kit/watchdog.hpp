// Tells whoever supervises this process, systemd or the launcher, that it has started, that its event loops turn, and that
// it is about to end: the datagrams of sd_notify(3), to the socket that NOTIFY_SOCKET names. Who hears no turn for the time
// that WATCHDOG_USEC says takes the process for hung, and starts it anew.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/time.hpp"

namespace signalbox::kit {

class Watchdog {
 public:
  /// As the environment says; without NOTIFY_SOCKET nobody is told anything.
  static Watchdog from_environment();
  /// `limit`: zero if nobody watches.
  Watchdog(std::string socket, Duration limit) : socket_(std::move(socket)), limit_(limit) {}

  void started() const { tell("READY=1\nSTATUS=started"); }
  void stopping() const { tell("STOPPING=1\nSTATUS=stopping"); }
  /// Call it at each turn of one loop, with the longest time that another loop of the process has not turned: says that the
  /// process lives unless that is half of the limit.
  void turned(Duration latest) const;

 private:
  void tell(std::string_view what) const;

  std::string socket_;  ///< a path, or a name behind '@'
  Duration limit_;
};

/// Loops of a process that turn by themselves, each asked when it did so last. Thread-safe.
class LoopWatch {
 public:
  using LastTurn = std::function<Instant()>;

  void add(LastTurn last_turn);
  /// How long the latest of them has not turned; zero without any.
  Duration latest(Instant now) const;

 private:
  mutable std::mutex mutex_;
  std::vector<LastTurn> loops_;
};

}  // namespace signalbox::kit
