// Virtual time: what happens when, in order; events of one instant happen in the order in which they were asked for.
#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "messages/base/time.hpp"

namespace signalbox::simulate {

class EventQueue {
 public:
  using Act = std::function<void()>;

  Instant now() const { return now_; }
  /// Asks for `act` at `when`, or now if that has passed.
  void at(Instant when, Act act) { events_.push({when < now_ ? now_ : when, next_++, std::move(act)}); }
  void in(Duration delay, Act act) { at(now_ + delay, std::move(act)); }

  /// Lets everything happen up to and including `until`; the time is `until` afterwards.
  void run_until(Instant until) {
    while (!events_.empty() && events_.top().when <= until) {
      // The top is const only to protect the order, which does not depend on `act`.
      Act act = std::move(const_cast<Event&>(events_.top()).act);
      now_ = events_.top().when;
      events_.pop();
      ++happened_;
      act();
    }
    assert(until >= now_);
    now_ = until;
  }
  std::uint64_t happened() const { return happened_; }
  std::size_t pending() const { return events_.size(); }

 private:
  struct Event {
    Instant when;
    std::uint64_t number;
    Act act;
    bool operator<(const Event& other) const {  // the greatest is on top
      return when != other.when ? when > other.when : number > other.number;
    }
  };
  std::priority_queue<Event> events_;
  Instant now_ = instant_at(Duration::zero());
  std::uint64_t next_ = 0;
  std::uint64_t happened_ = 0;
};

/// Something that wants to be woken at a time that it may change.
class Alarm {
 public:
  Alarm(EventQueue& queue, EventQueue::Act act) : queue_(queue), act_(std::move(act)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// end_of_time: not at all.
  void set(Instant when) {
    due_ = when;
    if (when == end_of_time || when >= asked_) return;
    asked_ = when;
    queue_.at(when, [this, alive = std::weak_ptr<void>(alive_)] {
      if (!alive.expired()) fire();
    });
  }
  Instant due() const { return due_; }

 private:
  void fire() {
    if (queue_.now() < asked_) return;  // an older, later wish
    asked_ = end_of_time;
    if (queue_.now() < due_) return set(due_);
    due_ = end_of_time;
    act_();
  }
  EventQueue& queue_;
  EventQueue::Act act_;
  Instant due_ = end_of_time;
  Instant asked_ = end_of_time;  ///< the earliest event in the queue that will call fire()
  std::shared_ptr<void> alive_ =
      std::make_shared<int>();  ///< the queue outlives it: a process that is killed
};

}  // namespace signalbox::simulate
