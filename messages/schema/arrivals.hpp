// What a receiver makes of an envelope: is the message news, and how old is it? The bus asks it of what arrives by sockets,
// the simulator of what arrives in virtual time. Networks repeat, delay and overtake; processes die and live again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/schema/envelope.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// Why a message is not wanted.
enum class Unwelcome : std::uint8_t {
  duplicate,   ///< received before
  overtaken,   ///< of a topic whose latest value counts, and a later one was received
  superseded,  ///< a later incarnation of its sender has spoken
  stale,       ///< too old
  crowded,     ///< too many senders or topics are known
};

struct ArrivalsOptions {
  std::size_t topics_per_sender = 50'000;
  std::size_t senders = 10'000;
  Duration late_limit = 30s;  ///< age at which a kind that is not kept is too old to deliver
};

/// A message that was counted in.
struct Arrival {
  Duration age{};                    ///< beyond the fastest way here of its sender's life
  std::uint64_t missed = 0;          ///< messages of its topic that did not come before it
  bool recovered = false;            ///< one of those that were missed
  std::optional<Unwelcome> refused;  ///< counted in, but not to be delivered
};

class Arrivals {
 public:
  explicit Arrivals(ArrivalsOptions options) : options_(options) {}

  /// Asked first, since it is cheap: nothing has to be decoded to drop a repetition.
  std::optional<Unwelcome> refuse(const Envelope& envelope, std::string_view topic,
                                  const MessageInfo& info) const;
  /// Precondition: refuse() had no objection. `hop`: the time that it lay in a cache, if it comes from one.
  Arrival accept(const Envelope& envelope, std::string_view topic, const MessageInfo& info,
                 std::optional<Duration> hop, Instant now);

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
  Life& life_of(const Envelope& envelope);
  static void note_sequence(Life& life, const Envelope& envelope, std::string_view topic, bool from_cache,
                            Arrival& arrival);
  static Duration age_of(Life& life, const Envelope& envelope, std::optional<Duration> hop, Instant now);

  ArrivalsOptions options_;
  std::map<ProcessName, Life> lives_;
};

}  // namespace signalbox::schema
