// What is made of arriving frames: a state machine without sockets or clocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/bus/frames.hpp"
#include "messages/bus/keys.hpp"
#include "messages/bus/stats.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::bus {

struct ReceiverOptions {
  const Keyring* keyring = nullptr;  ///< nullptr: security none, nobody is asked for a proof
  std::uint64_t config_fingerprint = 0;
  std::size_t topics_per_sender = 50'000;
  std::size_t senders = 10'000;
  Duration late_limit = 30s;  ///< age at which a kind that is not kept is too old to deliver
};

class Receiver {
 public:
  explicit Receiver(ReceiverOptions options) : options_(options) {}

  /// The delivery, or why there is none. Counts either.
  tl::expected<schema::DeliveryPtr, Refusal> on_frames(Frames frames, Instant now);
  const ReceiverStats& stats() const { return stats_; }

 private:
  struct TopicState {
    std::uint64_t highest = 0;
    std::uint64_t seen = 0;  ///< bit i: highest - i was delivered
  };
  /// The life of a sender that counts.
  struct Life {
    Incarnation incarnation;
    std::vector<std::uint64_t> retired;    ///< random parts that spoke under the same counter before
    std::optional<Duration> least_offset;  ///< least (arrival - sent - hop)
    Instant least_at{};
    std::map<std::string, TopicState, std::less<>> topics;
  };

  tl::expected<schema::DeliveryPtr, Refusal> judge(Frames frames, Instant now);
  std::optional<Refusal> refuse_repeated(const Header& header) const;
  tl::expected<schema::DeliveryPtr, Refusal> accept(const Header& header, schema::Message message,
                                                    Instant now);
  Life& life_of(const schema::Envelope& envelope);
  void note_sequence(Life& life, const Header& header);
  static Duration age_of(Life& life, const Header& header, Instant now);
  SenderStats& stats_of(const std::string& sender);

  ReceiverOptions options_;
  ReceiverStats stats_;
  std::map<ProcessName, Life> lives_;
};

}  // namespace signalbox::bus
