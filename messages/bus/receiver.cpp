#include "messages/bus/receiver.hpp"

#include <algorithm>

#include "messages/bus/proof.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::bus {

namespace {

Refusal refusal(Drop reason, const Header& header, ErrorKind kind, std::string what) {
  return {reason, header.envelope.source.str(), Error{kind, std::move(what), std::string(header.topic), {}}};
}

struct DropText {
  Drop reason;
  ErrorKind kind;
  const char* what;
};

DropText text_of(schema::Unwelcome why) {
  using schema::Unwelcome;
  switch (why) {
    case Unwelcome::duplicate: return {Drop::duplicate, ErrorKind::conflict, "received before"};
    case Unwelcome::overtaken: return {Drop::overtaken, ErrorKind::conflict, "a later value was delivered"};
    case Unwelcome::superseded:
      return {Drop::superseded, ErrorKind::conflict, "a later incarnation of its sender has spoken"};
    case Unwelcome::stale: return {Drop::stale, ErrorKind::conflict, "too old"};
    case Unwelcome::crowded: break;
  }
  return {Drop::crowded, ErrorKind::too_large, "too many senders or topics"};
}

Refusal refusal(schema::Unwelcome why, const Header& header) {
  const DropText text = text_of(why);
  return refusal(text.reason, header, text.kind, text.what);
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

void Receiver::on_overrun(std::uint64_t count) {
  stats_of({}).dropped[static_cast<std::size_t>(Drop::crowded)] += count;
}

SenderStats& Receiver::stats_of(const std::string& sender) {
  const bool full = stats_.senders.size() >= options_.arrivals.senders && !stats_.senders.contains(sender);
  return stats_.senders[full ? std::string() : sender];
}

tl::expected<schema::DeliveryPtr, Refusal> Receiver::judge(Frames frames, Instant now) {
  const Keyring* keyring = options_.keyring;
  const auto header = read_header(frames, keyring == nullptr ? nullptr : &keyring->directory);
  if (!header) return tl::unexpected(header.error());
  // What was seen before needs no proof to be dropped; most of what a second forwarder brings ends here.
  if (const auto why = arrivals_.refuse(header->envelope, header->topic, *header->info))
    return tl::unexpected(refusal(*why, *header));
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

tl::expected<schema::DeliveryPtr, Refusal> Receiver::accept(const Header& header, schema::Message message,
                                                            Instant now) {
  const schema::Envelope& envelope = header.envelope;
  const schema::Arrival arrival = arrivals_.accept(envelope, header.topic, *header.info, header.hop, now);
  SenderStats& stats = stats_of(envelope.source.str());
  stats.missed += arrival.missed;
  stats.recovered += arrival.recovered;
  if (arrival.refused == schema::Unwelcome::stale)
    return tl::unexpected(refusal(Drop::stale, header, ErrorKind::conflict,
                                  fmt::format("{:.3f} s old", to_seconds(arrival.age))));
  if (arrival.refused) return tl::unexpected(refusal(*arrival.refused, header));
  if (envelope.config_fingerprint != options_.config_fingerprint) ++stats.fingerprint_mismatches;
  return std::make_shared<const schema::Delivery>(
      schema::Delivery{envelope, std::string(header.topic), arrival.age, std::move(message)});
}

}  // namespace signalbox::bus
