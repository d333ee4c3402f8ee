// One thread's event loop: descriptors (epoll, edge-triggered), timers, work for the end of the turn, work
// from other threads.
//
// Everything that runs on a loop runs on its thread; only post() and stop() may be called from elsewhere.
// Bytes are read into one scratch buffer that all connections share, so an idle stream holds no buffer. The
// rule that keeps it safe: nothing reads from a descriptor except on_ready() and work given to later().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "messages/base/time.hpp"

struct epoll_event;

namespace signalbox::net {

class Timer;

/// What a descriptor's owner is told. Edge-triggered: after an event, read or write until the kernel says
/// "would block".
class Watcher {
 public:
  /// `events` are epoll's (EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR).
  virtual void on_ready(std::uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

/// Something that may still be on the call stack, or named by work given to later(), when it ends:
/// Loop::dispose() destroys it once neither can be.
class Disposable {
 public:
  virtual ~Disposable() = default;
};

class Loop {
 public:
  using Task = std::function<void()>;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// The monotonic time at which this turn began.
  Instant now() const { return now_; }
  /// Runs turns until stop().
  void run();
  /// Waits at most this long for something to do and does it. Returns false after stop().
  bool turn(Duration longest);
  /// Ends run() after the current turn; from any thread or signal handler.
  void stop();
  /// Runs `task` on the loop's thread; from any thread.
  void post(Task task);

  /// Runs `task` at the end of this turn.
  void later(Task task) { later_.push_back(std::move(task)); }
  /// Destroys it when nothing that already runs or waits can reach it. It must give no more work to later().
  void dispose(std::unique_ptr<Disposable> object) { graveyard_.push_back(std::move(object)); }

  /// Starts and stops telling `watcher` about reads, writes and hang-ups on `fd`. After unwatch() no event
  /// reaches it, not even one that was already collected. The descriptor stays the caller's.
  void watch(int fd, Watcher& watcher);
  /// The same for a descriptor that only accepts; told again as long as a connection waits (level-triggered).
  void watch_listener(int fd, Watcher& watcher);
  void unwatch(int fd, Watcher& watcher);

  /// The shared read buffer.
  std::span<char> scratch() { return scratch_; }
  /// How often one descriptor may fill the scratch buffer in a row: who has more goes on at the end of the turn, so that one fast
  /// peer does not starve the others.
  static constexpr int reads_in_a_row = 16;
  /// An empty string with warm memory, and its way back.
  std::string take_buffer();
  void give_buffer(std::string&& buffer);

 private:
  friend class Timer;
  void collect(Duration longest);
  void fire_timers();
  void run_posted();
  void finish_turn();
  int wait_ms(Duration longest) const;

  int epoll_ = -1;
  int wake_ = -1;
  Instant now_;
  std::atomic<bool> stopped_{false};
  std::vector<epoll_event> events_;
  std::size_t next_event_ = 0, event_count_ = 0;
  std::vector<Timer*> timers_;  ///< a binary heap by Timer::key_
  std::vector<Task> later_, running_;
  std::vector<std::unique_ptr<Disposable>> graveyard_, ended_;
  std::vector<char> scratch_;
  std::vector<std::string> buffers_;
  std::mutex posted_mutex_;
  std::vector<Task> posted_;
};

/// Calls back once when its deadline passes. Moving a deadline later, and disarming, cost nothing: the heap
/// is corrected when the old one passes.
class Timer {
 public:
  Timer(Loop& loop, Loop::Task on_due) : loop_(loop), on_due_(std::move(on_due)) {}
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void arm(Instant deadline);
  void arm_in(Duration delay) { arm(loop_.now() + delay); }
  void disarm() { deadline_ = end_of_time; }
  bool armed() const { return deadline_ != end_of_time; }

 private:
  friend class Loop;
  static constexpr std::size_t nowhere = SIZE_MAX;
  void place(std::size_t at);
  void sift_up(std::size_t at);
  void sift_down(std::size_t at);
  void leave_heap();

  Loop& loop_;
  Loop::Task on_due_;
  Instant deadline_ = end_of_time;  ///< what the owner asked for
  Instant key_ = end_of_time;       ///< where the heap believes it is; never later than deadline_
  std::size_t at_ = nowhere;
};

}  // namespace signalbox::net
