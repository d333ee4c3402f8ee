#include "actors/global_optimizer/machine/election.hpp"

#include <algorithm>

#include "actors/kit/fleet/terms.hpp"

namespace signalbox::global_optimizer {

namespace {
constexpr Duration peer_lifetime = 2s;
constexpr int missed_periods = 3;
}  // namespace

Election::Election(ElectionOptions options, Instant now)
    : options_(std::move(options)), heard_at_(now), progress_at_(now) {
  if (options_.kept_counter > 0) term_ = {options_.kept_counter, options_.id};
}

/// True if this is a higher term than the own one, so that a leader must step down.
bool Election::observe(const Term& term) {
  if (!kit::is_plausible(term.counter, term_.counter, options_.epoch) || term <= term_) return false;
  term_ = term;
  return std::exchange(leads_, false);
}

bool Election::hear_beat(const schema::Beat& beat, Instant sent, Instant now) {
  const bool stepped_down = observe(std::max(beat.term, beat.snapshot.term));
  if (beat.role != Role::global_optimizer) return stepped_down;
  peers_[beat.id] = {sent, sent - beat.uptime};
  if (leads_ || beat.term != term_ || beat.term.optimizer != beat.id) return stepped_down;
  if (beat.leads && now - sent < options_.timeout) heard_leader(now);
  if (!beat.leads)
    heard_at_ = std::min(heard_at_, now - options_.timeout);  // it resigned, or was started anew
  return stepped_down;
}

bool Election::hear(const schema::Delivery& delivery, Instant now) {
  if (delivery.envelope.source == options_.id) return false;
  if (const auto* beat = std::get_if<schema::Beat>(&delivery.message))
    return hear_beat(*beat, now - delivery.age, now);
  SnapshotVersion version;
  bool direct = false;
  if (const auto* alive = std::get_if<schema::KeepAlive>(&delivery.message))
    version = alive->version, direct = true;
  else if (const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&delivery.message))
    version = snapshot->version;
  else if (const auto* receipt = std::get_if<schema::SnapshotReceipt>(&delivery.message))
    version = receipt->in_force;
  else
    return false;
  const bool stepped_down = observe(version.term);
  if (leads_ || version.term != term_ || version.term.optimizer == options_.id) return stepped_down;
  // A receipt or a snapshot from a cache shows a living leader only if it is news.
  const bool news = newest_ < version;
  if (news) newest_ = version, progress_at_ = now;
  if (const auto* alive = std::get_if<schema::KeepAlive>(&delivery.message); alive && alive->holding)
    progress_at_ = now;
  if ((direct && delivery.age < options_.timeout) || news) heard_leader(now);
  return stepped_down;
}

/// How many living peers with a lower id have listened for long enough to stand.
std::size_t Election::rank(Instant now) const {
  return static_cast<std::size_t>(std::count_if(peers_.begin(), peers_.end(), [&](const auto& peer) {
    return peer.first < options_.id && now - peer.second.heard_at <= peer_lifetime &&
           now - peer.second.started >= options_.timeout;
  }));
}

bool Election::has_standby(Instant now) const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [&](const auto& peer) { return now - peer.second.heard_at <= peer_lifetime; });
}

Instant Election::due(Instant now) const {
  if (leads_) return end_of_time;
  const Instant silent = heard_at_ + options_.timeout;
  const Instant stuck = progress_at_ + options_.timeout + missed_periods * options_.period;
  const auto turns = static_cast<int>(std::min<std::size_t>(rank(now), 16));
  return std::max(rest_until_, std::min(silent, stuck) + turns * options_.timeout);
}

bool Election::should_stand(Instant now) const { return now >= due(now); }

std::uint64_t Election::next_counter() const {
  return std::max(term_.counter, kit::first_counter(options_.epoch)) + 1;
}

Term Election::take(std::uint64_t counter, Instant now) {
  term_ = {counter, options_.id};
  leads_ = true;
  newest_ = {};
  heard_at_ = progress_at_ = now;
  return term_;
}

void Election::resign(Instant now, Duration rest) {
  leads_ = false;
  rest_until_ = now + rest;
  heard_at_ = progress_at_ = now;
}

}  // namespace signalbox::global_optimizer
