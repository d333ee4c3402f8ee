#include "tools/launcher/machine/supervised.hpp"

#include <algorithm>

namespace signalbox::launcher {

void Supervised::want(Instant now) {
  wanted_ = true;
  if (!alive()) due_ = now;
}

void Supervised::unwant() {
  wanted_ = false;
  due_.reset();
  state_ = alive() ? ChildState::stopping : ChildState::idle;
}

void Supervised::restart(Instant now) {
  wanted_ = true;
  early_deaths_ = 0;
  restarting_ = alive();
  if (alive())
    state_ = ChildState::stopping;
  else
    due_ = now;
}

void Supervised::on_started(Instant now) {
  ++starts_;
  started_ = now;
  due_.reset();
  restarting_ = false;
  alive_at_.reset();
  state_ = ChildState::running;
}

void Supervised::on_ended(Instant now) {
  const bool early = !alive() || now - started_ < rule_.long_life;
  const bool wished = restarting_;
  restarting_ = false;
  due_.reset();
  if (!wanted_) {
    state_ = ChildState::idle;
    return;
  }
  early_deaths_ = wished || !early ? 0 : early_deaths_ + 1;
  if (early_deaths_ >= rule_.early_deaths) {
    state_ = ChildState::crash_loop;
    due_ = now + rule_.crash_loop_wait;
    return;
  }
  state_ = ChildState::backing_off;
  due_ = wished ? now : now + wait();
}

void Supervised::forgive(Duration lateness) {
  if (alive_at_) *alive_at_ += lateness;
}

bool Supervised::hangs(Instant now) const {
  return state_ == ChildState::running && rule_.silence > Duration::zero() && alive_at_ &&
         now - *alive_at_ > rule_.silence;
}

Duration Supervised::uptime(Instant now) const { return alive() ? now - started_ : Duration::zero(); }

Duration Supervised::wait() const {
  Duration wait = rule_.first_wait;
  for (std::uint32_t death = 1; death < early_deaths_ && wait < rule_.longest_wait; ++death) wait *= 2;
  return std::min(wait, rule_.longest_wait);
}

}  // namespace signalbox::launcher
