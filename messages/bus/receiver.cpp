#include "messages/bus/receiver.hpp"

#include <algorithm>

#include "messages/bus/proof.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::bus {

namespace {

/// How far behind the highest sequence a late message is still told from a repeated one.
constexpr std::uint64_t window = 64;
/// Two clocks may drift apart by this much (100 ppm) before age is counted: else a receiver that runs for days
/// would see every message of a slower clock grow old.
constexpr std::int64_t drift_divisor = 10'000;
constexpr std::size_t most_retired = 16;

Refusal refusal(Drop reason, const Header& header, ErrorKind kind, std::string what) {
  return {reason, header.envelope.source.str(), Error{kind, std::move(what), std::string(header.topic), {}}};
}

Duration limit_of(const schema::MessageInfo& info, Duration late_limit) {
  return info.keep > Duration::zero() ? info.keep : late_limit;
}

}  // namespace

tl::expected<schema::DeliveryPtr, Refusal> Receiver::on_frames(Frames frames, Instant now) {
  auto outcome = judge(frames, now);
  if (outcome) {
    ++stats_of((*outcome)->envelope.source.str()).accepted;
  } else {
    const auto reason = static_cast<std::size_t>(outcome.error().reason);
    ++stats_of(outcome.error().sender).dropped[reason];
  }
  return outcome;
}

SenderStats& Receiver::stats_of(const std::string& sender) {
  const bool full = stats_.senders.size() >= options_.senders && !stats_.senders.contains(sender);
  return stats_.senders[full ? std::string() : sender];
}

tl::expected<schema::DeliveryPtr, Refusal> Receiver::judge(Frames frames, Instant now) {
  const Keyring* keyring = options_.keyring;
  const auto header = read_header(frames, keyring == nullptr ? nullptr : &keyring->directory);
  if (!header) return tl::unexpected(header.error());
  // What was seen before needs no proof to be dropped; most of what a second forwarder brings ends here.
  if (auto repeated = refuse_repeated(*header)) return tl::unexpected(std::move(*repeated));
  const Signed content{header->topic, frames[1], frames[2]};
  if (keyring != nullptr &&
      !check_proof(*keyring, header->info->protection, *header->member, content, frames[3]))
    return tl::unexpected(refusal(Drop::bad_proof, *header, ErrorKind::denied, "its proof does not hold"));

  auto message = codec::decode(header->envelope.kind, frames[2]);
  if (!message)
    return tl::unexpected(Refusal{Drop::bad_body, header->envelope.source.str(), std::move(message.error())});
  if (schema::topic_of(*message, header->envelope.source) != header->topic)
    return tl::unexpected(
        refusal(Drop::wrong_topic, *header, ErrorKind::invalid, "its body belongs to another topic"));
  return accept(*header, std::move(*message), now);
}

std::optional<Refusal> Receiver::refuse_repeated(const Header& header) const {
  const auto known = lives_.find(header.envelope.source);
  if (known == lives_.end()) return std::nullopt;
  const Life& life = known->second;
  const Incarnation& incarnation = header.envelope.incarnation;
  const bool retired = incarnation.counter == life.incarnation.counter &&
                       std::ranges::find(life.retired, incarnation.random) != life.retired.end();
  if (incarnation.older_than(life.incarnation) || retired)
    return refusal(
        Drop::superseded, header, ErrorKind::conflict,
        fmt::format("of incarnation {}, but {} has spoken", incarnation.counter, life.incarnation.counter));
  if (incarnation != life.incarnation) return std::nullopt;
  const auto topic = life.topics.find(header.topic);
  if (topic == life.topics.end() || header.envelope.sequence > topic->second.highest) return std::nullopt;
  const std::uint64_t behind = topic->second.highest - header.envelope.sequence;
  if (behind >= window || (topic->second.seen >> behind & 1u) != 0)
    return refusal(Drop::duplicate, header, ErrorKind::conflict, "received before");
  // Of a topic's latest value an older one is of no use; of counts and records each one is.
  if (header.info->keep > Duration::zero())
    return refusal(Drop::overtaken, header, ErrorKind::conflict, "a later value was delivered");
  return std::nullopt;
}

tl::expected<schema::DeliveryPtr, Refusal> Receiver::accept(const Header& header, schema::Message message,
                                                            Instant now) {
  const schema::Envelope& envelope = header.envelope;
  if (!lives_.contains(envelope.source) && lives_.size() >= options_.senders)
    return tl::unexpected(refusal(Drop::crowded, header, ErrorKind::too_large, "too many senders"));
  Life& life = life_of(envelope);
  if (!life.topics.contains(header.topic) && life.topics.size() >= options_.topics_per_sender)
    return tl::unexpected(refusal(Drop::crowded, header, ErrorKind::too_large, "too many topics"));
  const Duration age = age_of(life, header, now);
  note_sequence(life, header);
  if (age > limit_of(*header.info, options_.late_limit))
    return tl::unexpected(
        refusal(Drop::stale, header, ErrorKind::conflict, fmt::format("{:.3f} s old", to_seconds(age))));
  if (envelope.config_fingerprint != options_.config_fingerprint)
    ++stats_of(envelope.source.str()).fingerprint_mismatches;
  return std::make_shared<const schema::Delivery>(
      schema::Delivery{envelope, std::string(header.topic), age, std::move(message)});
}

Receiver::Life& Receiver::life_of(const schema::Envelope& envelope) {
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

void Receiver::note_sequence(Life& life, const Header& header) {
  const std::uint64_t sequence = header.envelope.sequence;
  const auto [at, is_new] = life.topics.try_emplace(std::string(header.topic));
  TopicState& topic = at->second;
  if (is_new) {
    topic = {sequence, ~std::uint64_t{0}};  // what was said before we listened is not missed
  } else if (sequence > topic.highest) {
    const std::uint64_t step = sequence - topic.highest;
    if (!header.hop) stats_of(header.envelope.source.str()).missed += step - 1;
    topic.seen = step >= window ? 0 : topic.seen << step;
    topic.seen |= 1;
    topic.highest = sequence;
  } else {
    topic.seen |= std::uint64_t{1} << (topic.highest - sequence);
    ++stats_of(header.envelope.source.str()).recovered;
  }
}

// Clocks are not synchronised: the least (arrival - sent) of a life is its clocks' distance plus the fastest way
// here, and what exceeds it is age.
Duration Receiver::age_of(Life& life, const Header& header, Instant now) {
  const Duration hop = header.hop.value_or(Duration::zero());
  const Duration offset = now.time_since_epoch() - header.envelope.sent - hop;
  if (!life.least_offset) life.least_offset = offset, life.least_at = now;
  const Duration eased = *life.least_offset + (now - life.least_at) / drift_divisor;
  if (offset <= eased) {
    life.least_offset = offset, life.least_at = now;
    return hop;
  }
  return offset - eased + hop;
}

}  // namespace signalbox::bus
