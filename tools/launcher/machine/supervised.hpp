// One child process as its launcher sees it: when to start it, and when to wait. It starts nothing itself.
//
// A life that ends early makes the next start wait, twice as long each time; a long life forgives all. Too many early
// deaths in a row are a crash loop: from then on it is tried once a minute only, since what kills it (a full disk, a missing
// file) may be mended without anybody thinking of the launcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "messages/base/described.hpp"
#include "messages/base/time.hpp"

namespace signalbox::launcher {

enum class ChildState : std::uint8_t { idle, running, stopping, backing_off, crash_loop };

struct RestartRule {
  Duration first_wait = 100ms;
  Duration longest_wait = 10s;
  Duration long_life = 5s;         ///< a life of this length forgives the deaths before it
  std::uint32_t early_deaths = 8;  ///< in a row, that make a crash loop
  Duration crash_loop_wait = 60s;
  Duration silence = 30s;  ///< of one that has spoken: then it hangs; zero: never
};

class Supervised {
 public:
  explicit Supervised(RestartRule rule = {}) : rule_(rule) {}

  /// It shall run, from now on.
  void want(Instant now);
  /// It shall not run any more; a running one has been asked to stop.
  void unwant();
  /// Its next end is wished: start again at once, whatever was counted.
  void restart(Instant now);

  void on_started(Instant now);
  /// It ended, or could not be started.
  void on_ended(Instant now);

  /// It said that it is alive. One that has said so must go on saying so.
  void on_alive(Instant now) { alive_at_ = now; }
  /// The launcher itself did not run for so long: nobody was silent in that time.
  void forgive(Duration lateness);
  /// It runs and has been silent for too long.
  bool hangs(Instant now) const;

  /// When it shall be started next; nothing if it runs or shall not.
  std::optional<Instant> due() const { return due_; }
  ChildState state() const { return state_; }
  std::uint64_t restarts() const { return starts_ > 0 ? starts_ - 1 : 0; }
  /// Since its start; zero if it does not run.
  Duration uptime(Instant now) const;

 private:
  bool alive() const { return state_ == ChildState::running || state_ == ChildState::stopping; }
  Duration wait() const;

  RestartRule rule_;
  ChildState state_ = ChildState::idle;
  bool wanted_ = false;
  bool restarting_ = false;
  std::uint32_t early_deaths_ = 0;
  std::uint64_t starts_ = 0;
  Instant started_{};
  std::optional<Instant> due_;
  std::optional<Instant> alive_at_;  ///< in this life
};

}  // namespace signalbox::launcher

template <>
struct signalbox::EnumTable<signalbox::launcher::ChildState> {
  static constexpr std::array rows{
      EnumRow{"idle", "not running, and not meant to"},
      EnumRow{"running", "running"},
      EnumRow{"stopping", "asked to stop"},
      EnumRow{"backing-off", "ended; it is started again after a pause"},
      EnumRow{"crash-loop",
              "ended too often too early; it is tried once a minute, and at once by 'signalbox restart'"},
  };
};
