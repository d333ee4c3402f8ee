#include "messages/schema/arrivals.hpp"

#include <algorithm>

namespace signalbox::schema {

namespace {

/// How far behind the highest sequence a late message is still told from a repeated one.
constexpr std::uint64_t window = 64;
/// Two clocks may drift apart by this much (100 ppm) before age is counted: else a receiver that runs for days
/// would see every message of a slower clock grow old.
constexpr std::int64_t drift_divisor = 10'000;
constexpr std::size_t most_retired = 16;

Duration limit_of(const MessageInfo& info, Duration late_limit) {
  return info.keep > Duration::zero() ? info.keep : late_limit;
}

}  // namespace

std::optional<Unwelcome> Arrivals::refuse(const Envelope& envelope, std::string_view topic,
                                          const MessageInfo& info) const {
  const auto known = lives_.find(envelope.source);
  if (known == lives_.end()) return std::nullopt;
  const Life& life = known->second;
  const Incarnation& incarnation = envelope.incarnation;
  const bool retired = incarnation.counter == life.incarnation.counter &&
                       std::ranges::find(life.retired, incarnation.random) != life.retired.end();
  if (incarnation.older_than(life.incarnation) || retired) return Unwelcome::superseded;
  if (incarnation != life.incarnation) return std::nullopt;
  const auto state = life.topics.find(topic);
  if (state == life.topics.end() || envelope.sequence > state->second.highest) return std::nullopt;
  const std::uint64_t behind = state->second.highest - envelope.sequence;
  if (behind >= window || (state->second.seen >> behind & 1u) != 0) return Unwelcome::duplicate;
  // Of a topic's latest value an older one is of no use; of counts and records each one is.
  if (info.keep > Duration::zero()) return Unwelcome::overtaken;
  return std::nullopt;
}

Arrival Arrivals::accept(const Envelope& envelope, std::string_view topic, const MessageInfo& info,
                         std::optional<Duration> hop, Instant now) {
  Arrival arrival;
  if (!lives_.contains(envelope.source) && lives_.size() >= options_.senders) {
    arrival.refused = Unwelcome::crowded;
    return arrival;
  }
  Life& life = life_of(envelope);
  if (!life.topics.contains(topic) && life.topics.size() >= options_.topics_per_sender) {
    arrival.refused = Unwelcome::crowded;
    return arrival;
  }
  arrival.age = age_of(life, envelope, hop, now);
  note_sequence(life, envelope, topic, hop.has_value(), arrival);
  if (arrival.age > limit_of(info, options_.late_limit)) arrival.refused = Unwelcome::stale;
  return arrival;
}

Arrivals::Life& Arrivals::life_of(const Envelope& envelope) {
  const auto [at, is_new] = lives_.try_emplace(envelope.source);
  Life& life = at->second;
  if (is_new) {
    life.incarnation = envelope.incarnation;
  } else if (life.incarnation != envelope.incarnation) {
    std::vector<std::uint64_t> retired;
    if (life.incarnation.counter == envelope.incarnation.counter) {
      retired = std::move(life.retired);
      if (retired.size() == most_retired) retired.erase(retired.begin());
      retired.push_back(life.incarnation.random);
    }
    life = Life{envelope.incarnation, std::move(retired), {}, {}, {}};
  }
  return life;
}

void Arrivals::note_sequence(Life& life, const Envelope& envelope, std::string_view topic, bool from_cache,
                             Arrival& arrival) {
  const std::uint64_t sequence = envelope.sequence;
  const auto [at, is_new] = life.topics.try_emplace(std::string(topic));
  TopicState& state = at->second;
  if (is_new) {
    state = {sequence, ~std::uint64_t{0}};  // what was said before we listened is not missed
  } else if (sequence > state.highest) {
    const std::uint64_t step = sequence - state.highest;
    if (!from_cache) arrival.missed = step - 1;
    state.seen = step >= window ? 0 : state.seen << step;
    state.seen |= 1;
    state.highest = sequence;
  } else {
    state.seen |= std::uint64_t{1} << (state.highest - sequence);
    arrival.recovered = true;
  }
}

// Clocks are not synchronised: the least (arrival - sent) of a life is its clocks' distance plus the fastest way
// here, and what exceeds it is age.
Duration Arrivals::age_of(Life& life, const Envelope& envelope, std::optional<Duration> hop, Instant now) {
  const Duration lain = hop.value_or(Duration::zero());
  const Duration offset = now.time_since_epoch() - envelope.sent - lain;
  if (!life.least_offset) life.least_offset = offset, life.least_at = now;
  const Duration eased = *life.least_offset + (now - life.least_at) / drift_divisor;
  if (offset <= eased) {
    life.least_offset = offset, life.least_at = now;
    return lain;
  }
  return offset - eased + lain;
}

}  // namespace signalbox::schema
