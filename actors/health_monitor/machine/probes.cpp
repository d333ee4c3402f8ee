#include "actors/health_monitor/machine/probes.hpp"

namespace signalbox::health_monitor {

namespace {
constexpr Duration in_doubt = 300ms;      ///< between health probes of an engine that is doubted
constexpr Duration fresh = 2s;            ///< how long an answer counts
constexpr Duration generate_every = 30s;  ///< a token each half minute costs nothing
constexpr Duration generate_again = 3s;   ///< after one that failed
constexpr Duration not_our_business =
    10min;  ///< after an engine that will not be asked so: an embedder, or one behind a key
constexpr Duration grace = 1s;  ///< beyond its timeout
}  // namespace

std::optional<ProbeKind> Probes::due(bool doubted, bool idle, Instant now) {
  if (every_ == Duration::zero()) return std::nullopt;
  if (open_ && now - open_->since > timeout_of(open_->kind) + grace)
    took({open_->number, ProbeFault::timed_out, 0}, now);
  if (open_) return std::nullopt;
  if (now >= health_due_ || (doubted && now >= health_due_ - every_ + in_doubt)) return ProbeKind::health;
  if (idle && !doubted && now >= generate_due_) return ProbeKind::generate;
  return std::nullopt;
}

void Probes::started(ProbeKind kind, std::uint64_t number, Instant now) {
  open_ = Open{kind, number, now};
  (kind == ProbeKind::health ? health_due_ : generate_due_) =
      now + (kind == ProbeKind::health ? every_ : generate_every);
}

bool Probes::took(const Probed& answer, Instant now) {
  if (!open_ || open_->number != answer.number) return false;
  const ProbeKind kind = open_->kind;
  open_.reset();
  kind == ProbeKind::health ? took_health(answer, now) : took_generation(answer, now);
  return true;
}

/// Any answer but a 5xx shows that somebody is there: engines differ in which pages they have.
void Probes::took_health(const Probed& answer, Instant now) {
  unreachable_ = answer.fault == ProbeFault::unreachable ? unreachable_ + 1 : 0;
  const bool good =
      answer.fault == ProbeFault::malformed || (answer.fault == ProbeFault::none && answer.status < 500);
  failed_ = good ? 0 : failed_ + 1;
  if (good) answered_at_ = now;
}

void Probes::took_generation(const Probed& answer, Instant now) {
  const bool ours = answer.fault != ProbeFault::none || answer.status < 400 || answer.status >= 500;
  if (!ours) generate_due_ = now + not_our_business;
  const bool good = answer.fault == ProbeFault::none && answer.status < 500;
  barren_ = good ? 0 : barren_ + 1;
  if (!good) generate_due_ = now + generate_again;
}

Eye Probes::eye(Instant now) const {
  const bool answers = failed_ == 0 && answered_at_ != never_yet && now - answered_at_ <= fresh;
  return {answers, unreachable_, failed_, barren_};
}

void Probes::forgive(Duration lateness) {
  if (open_) open_->since += lateness;
  if (answered_at_ != never_yet) answered_at_ += lateness;
}

}  // namespace signalbox::health_monitor
