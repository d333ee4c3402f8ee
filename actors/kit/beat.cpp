#include "actors/kit/beat.hpp"

#include "actors/kit/host.hpp"

namespace signalbox::kit {

BeatActor::BeatActor(caf::actor_config& config, Duration period, std::function<void(Duration)> say)
    : OrderedActor(config), period_(period), say_(std::move(say)), due_(time()) {
  const Step step(this);
  this->send(this, WakeAtom::value);
}

Instant BeatActor::time() {
  return instant_at(std::chrono::duration_cast<Duration>(clock().now().time_since_epoch()));
}

caf::behavior BeatActor::make_behavior() {
  return {[this](WakeAtom) {
    const Step step(this);
    const Duration lag = std::max(time() - due_, Duration::zero());
    say_(lag);
    due_ = time() + period_;
    this->delayed_send(this, period_, WakeAtom::value);
  }};
}

}  // namespace signalbox::kit
