// One engine under a monitor's eye: its evidence over time, and a state that neither flaps nor jumps.
//
//   worse: at once         better: after the finding held for a while, twice as long for each recent fall
//   a new life, or one back from the dead: `starting`, its capacity ramped up
#pragma once

#include <optional>

#include "actors/health_monitor/machine/accrual.hpp"
#include "actors/health_monitor/machine/judge.hpp"

namespace signalbox::health_monitor {

class Patient {
 public:
  static constexpr Duration ramp = 10s;
  static constexpr Duration hold_better = 1s;
  static constexpr Duration flap_memory = 60s;

  /// `probes`: see there.
  Patient(Instant since, Probes probes) : probes_(probes), accrual_(since), since_(since) {}

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
  Duration silence(Instant now) const { return accrual_.silence(now); }
  /// Its proxy's last reading failed.
  bool misread() const { return signal_ && signal_->failed_readings > 0; }
  Probes& probes() { return probes_; }
  /// It has no work, and no router has used it for a while.
  bool idle(Instant now) const;

 private:
  double flaps(Instant now) const;
  bool ramping(Instant now) const { return ramp_from_ != never_yet && now < ramp_from_ + ramp; }

  Probes probes_;
  Accrual accrual_;  ///< of its proxy's words on it
  std::optional<schema::EngineSignal> signal_;
  ProcessName proxy_;
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
