#include "actors/health_monitor/machine/patient.hpp"

#include <algorithm>
#include <cmath>

#include "actors/kit/fleet/verdicts.hpp"

namespace signalbox::health_monitor {

namespace {

/// How long no router must have used an engine before the monitor asks it for a token.
constexpr Duration unused = 20s;

/// True if tokens moved between two readings, or there was nothing that could have moved them.
bool moved(const schema::EngineSignal& before, const schema::EngineSignal& now) {
  if (!now.running || *now.running < 1) return true;
  if (!now.output_tokens_total || !before.output_tokens_total) return true;
  return *now.output_tokens_total != *before.output_tokens_total ||
         now.prompt_tokens_total != before.prompt_tokens_total;
}

}  // namespace

void Patient::hear(const schema::EngineSignal& signal, const ProcessName& proxy, Instant now) {
  accrual_.heard(now);
  const bool reborn = signal_ && !(signal_->incarnation == signal.incarnation);
  if (reborn) {
    outcomes_.clear();
    ramp_from_ = now;
  }
  if (!signal_ || reborn || signal.scrape != schema::ScrapeState::ok || moved(*signal_, signal))
    moved_at_ = now;
  signal_ = signal;
  proxy_ = proxy;
}

void Patient::forgive(Duration lateness) {
  accrual_.forgive(lateness);
  probes_.forgive(lateness);
  if (moved_at_ != never_yet) moved_at_ += lateness;
}

Finding Patient::find(bool proxy_lives, const policy::Stale& stale, Instant now) const {
  Evidence evidence;
  evidence.signal = signal_ ? &*signal_ : nullptr;
  evidence.silence = accrual_.silence(now);
  evidence.suspicion = accrual_.phi(now);
  evidence.proxy_lives = proxy_lives;
  // A silent proxy cannot tell whether tokens move.
  if (signal_ && evidence.silence <= stale.signal_soft) evidence.stuck = now - moved_at_;
  evidence.vouched = outcomes_.vouch(now);
  evidence.eye = probes_.eye(now);
  evidence.succeeded = outcomes_.succeeded(now);
  evidence.unreached = outcomes_.unreached(now);
  evidence.failed = outcomes_.failed(now);
  evidence.drain_ordered = drained_;
  Finding finding = judge(evidence, stale);
  finding.confirmed |= confirmed_ && kit::is_accused(finding.state);
  return finding;
}

bool Patient::idle(Instant now) const {
  return signal_ && signal_->scrape == schema::ScrapeState::ok && signal_->running.value_or(1) < 1 &&
         outcomes_.idle_for(now) > unused;
}

double Patient::flaps(Instant now) const {
  return flapped_at_ == never_yet
             ? 0
             : flaps_ * std::exp2(-to_seconds(now - flapped_at_) / to_seconds(flap_memory));
}

bool Patient::settle(const Finding& finding, Instant now) {
  confirmed_ = finding.confirmed;
  HealthState wanted = finding.state;
  if (wanted == HealthState::ready && ramping(now)) wanted = HealthState::starting;
  if (wanted == state_) {
    better_since_ = never_yet;
    return false;
  }

  const bool ordered = wanted == HealthState::draining || state_ == HealthState::draining;
  const bool worse = kit::badness(wanted) > kit::badness(state_);
  if (!worse && !ordered && kit::is_accused(state_)) {
    if (better_since_ == never_yet) better_since_ = now;
    const double patience = std::exp2(std::min(5.0, std::max(0.0, flaps(now) - 1)));
    if (now - better_since_ < from_seconds(to_seconds(hold_better) * patience)) return false;
    if (state_ == HealthState::gone) {
      ramp_from_ = now;
      if (wanted == HealthState::ready) wanted = HealthState::starting;
    }
  }
  if (worse && kit::is_accused(wanted) && !kit::is_accused(state_)) {
    flaps_ = flaps(now) + 1;
    flapped_at_ = now;
  }
  state_ = wanted;
  since_ = now;
  better_since_ = never_yet;
  return true;
}

double Patient::capacity_factor(const policy::Health& health, const Finding& finding, Instant now) const {
  switch (state_) {
    case HealthState::ready: return 1;
    case HealthState::degraded:
      return finding.evidence == schema::Evidence::slow ? 1 : health.degraded_capacity;
    case HealthState::starting: {
      if (!ramping(now)) return health.starting_capacity;
      const double done = to_seconds(now - ramp_from_) / to_seconds(ramp);
      return std::floor((health.starting_capacity + (1 - health.starting_capacity) * done) * 10) / 10;
    }
    default: return 0;
  }
}

}  // namespace signalbox::health_monitor
