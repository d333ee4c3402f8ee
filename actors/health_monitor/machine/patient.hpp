// One engine under a monitor's eye: its evidence over time, and a state that neither flaps nor jumps.
//
//   worse: at once         better: after the finding held for a while, twice as long for each recent fall
//   a new life, or one back from the dead: `starting`, its capacity ramped up
#pragma once

#include <optional>

#include "actors/health_monitor/machine/judge.hpp"

namespace signalbox::health_monitor {

class Patient {
 public:
  static constexpr Duration ramp = 10s;
  static constexpr Duration hold_better = 1s;
  static constexpr Duration flap_memory = 60s;

  explicit Patient(Instant since) : listened_since_(since), since_(since) {}

  void hear(const schema::EngineSignal& signal, const ProcessName& proxy, Instant now);
  void hear(const schema::OutcomeRow& row, Instant now) { outcomes_.hear(row, now); }
  void set_drained(bool drained) { drained_ = drained; }
  /// Time that the monitor itself slept: not the engine's silence.
  void forgive(Duration lateness);

  Finding find(bool proxy_lives, const policy::Stale& stale, Instant now) const;
  /// Takes a finding, perhaps mildened by a cap, as the next state; true if the state changed.
  bool settle(const Finding& finding, Instant now);

  HealthState state() const { return state_; }
  Instant since() const { return since_; }
  /// Share of its capacity that may be planned, in steps of a tenth.
  double capacity_factor(const policy::Health& health, const Finding& finding, Instant now) const;
  const ProcessName& proxy() const { return proxy_; }
  Incarnation incarnation() const { return signal_ ? signal_->incarnation : Incarnation{}; }
  Instant heard_at() const { return heard_at_; }

 private:
  double flaps(Instant now) const;
  bool ramping(Instant now) const { return ramp_from_ != never_yet && now < ramp_from_ + ramp; }

  Instant listened_since_;
  std::optional<schema::EngineSignal> signal_;
  ProcessName proxy_;
  Instant heard_at_ = never_yet;
  double interval_s_ = 1;
  Instant moved_at_ = never_yet;  ///< when tokens last moved, or there was nothing to do
  Outcomes outcomes_;
  bool drained_ = false;

  HealthState state_ = HealthState::starting;
  Instant since_;
  Instant better_since_ = never_yet;
  Instant ramp_from_ = never_yet;
  double flaps_ = 0;
  Instant flapped_at_ = never_yet;
  bool confirmed_ = false;  ///< stays until the engine looks well again
};

}  // namespace signalbox::health_monitor
