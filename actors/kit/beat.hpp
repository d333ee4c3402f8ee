// The actor that says each period that its process lives, and how late its own timers are.
#pragma once

#include <caf/all.hpp>
#include <functional>

#include "actors/kit/ordered_actor.hpp"
#include "messages/base/time.hpp"

namespace signalbox::kit {

class BeatActor : public OrderedActor {
 public:
  BeatActor(caf::actor_config& config, Duration period, std::function<void(Duration loop_lag)> say);
  ~BeatActor() override { const Step step(this); }
  caf::behavior make_behavior() override;

 private:
  Instant time();
  Duration period_;
  std::function<void(Duration)> say_;
  Instant due_;
};

}  // namespace signalbox::kit
