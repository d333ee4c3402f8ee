// What a process's actors think of themselves, in one place for beats and /readyz; and how often they failed.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "actors/kit/shape/machine.hpp"

namespace signalbox::kit {

/// Thread-safe.
class Board {
 public:
  void set(const std::string& actor, Standing standing) {
    const std::lock_guard lock(mutex_);
    standings_[actor] = std::move(standing);
  }
  void note_restart() {
    const std::lock_guard lock(mutex_);
    ++restarts_;
  }
  std::uint64_t restarts() const {
    const std::lock_guard lock(mutex_);
    return restarts_;
  }
  /// One actor: its own; several: ready when all are, with the words of the first that is not.
  Standing merged() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Standing> standings_;
  std::uint64_t restarts_ = 0;
};

}  // namespace signalbox::kit
