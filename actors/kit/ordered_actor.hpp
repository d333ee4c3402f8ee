// What the thread sanitizer cannot see for itself. CAF hands actors and messages from thread to thread inside a library
// that is not instrumented, so that each step of an actor would look like a race with the one before it. This base says
// the order that CAF keeps: what was sent before it is received, and one step of an actor before the next. Nothing else
// is excused: what two threads share beside their messages is still judged. In other builds it is CAF's own actor.
#pragma once

#include <caf/all.hpp>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace signalbox::kit {

#ifdef __SANITIZE_THREAD__

class OrderedActor : public caf::event_based_actor {
 public:
  explicit OrderedActor(caf::actor_config& config) : caf::event_based_actor(config) {}
  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    __tsan_release(this);
    caf::event_based_actor::enqueue(std::move(message), unit);
  }

  /// Held by every handler, at the end of a constructor that wrote members, and by the destructor.
  class Step {
   public:
    explicit Step(OrderedActor* actor) : actor_(actor) { __tsan_acquire(actor_); }
    ~Step() { __tsan_release(actor_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    OrderedActor* actor_;
  };
};

#else

class OrderedActor : public caf::event_based_actor {
 public:
  using caf::event_based_actor::event_based_actor;
  struct Step {
    explicit Step(OrderedActor*) {}
  };
};

#endif

}  // namespace signalbox::kit
