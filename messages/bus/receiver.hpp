// What is made of arriving frames: a state machine without sockets or clocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/bus/keys.hpp"
#include "messages/bus/node.hpp"
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

struct Dropped {
  Drop reason;
  std::string sender;  ///< as claimed; empty if it could not be read
  std::string topic;
  Error why;
};

class Receiver {
 public:
  explicit Receiver(ReceiverOptions options) : options_(options) {}

  /// The delivery, or why there is none. Counts either.
  tl::expected<schema::DeliveryPtr, Dropped> on_frames(Frames frames, Instant now);
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
  struct Header;

  tl::expected<schema::DeliveryPtr, Dropped> judge(Frames frames, Instant now);
  std::optional<Dropped> refuse_repeated(const Header& header) const;
  Duration age_of(const Header& header, Instant now);

  ReceiverOptions options_;
  ReceiverStats stats_;
  std::map<ProcessName, Life> lives_;
};

}  // namespace signalbox::bus
