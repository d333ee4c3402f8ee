// Leadership by a lease in etcd: what Machine does with it.
#include <fmt/format.h>

#include "actors/global_optimizer/machine/machine.hpp"

namespace signalbox::global_optimizer {

void Machine::coordinate(Instant now, Effects& effects) {
  if (!tenure_) return;
  if (election_->leads() && tenure_->expired(now)) {
    election_->resign(now, Duration::zero());
    stepped_down("its lease was not renewed in time", now, effects);
  }
  const Duration patience = options_.leader_timeout + 3 * options_.period;
  if (election_->leads() && echo_.is_cut_off(patience, now))
    resign("it holds the lease, and nobody on the bus follows it", now, effects);
  if (auto ask = tenure_->ask(election_->next_counter(), now)) effects.command(*std::move(ask));
}

void Machine::hear_etcd(const EtcdAnswer& answer, Instant now, Effects& effects) {
  if (!tenure_) return;
  switch (tenure_->hear(answer, now)) {
    case Tenure::Turn::won: lead(election_->take(tenure_->counter(), now), now, effects); break;
    case Tenure::Turn::lost:
      if (!election_->leads()) break;
      election_->resign(now, Duration::zero());
      stepped_down("its lease is gone", now, effects);
      break;
    case Tenure::Turn::none: break;
  }
  coordinate(now, effects);
}

void Machine::watch_etcd(Instant now, Effects& effects) {
  if (!tenure_) return;
  alerts_.set(tenure_->silence(now) > options_.etcd->lease, kit::AlertName::coordination_lost,
              fmt::format("etcd does not answer: {}", tenure_->fault()), options_.id.str(), now, effects);
}

}  // namespace signalbox::global_optimizer
