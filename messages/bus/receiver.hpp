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
#include "messages/schema/arrivals.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::bus {

struct ReceiverOptions {
  const Keyring* keyring = nullptr;  ///< nullptr: security none, nobody is asked for a proof
  std::uint64_t config_fingerprint = 0;
  schema::ArrivalsOptions arrivals = {};
};

class Receiver {
 public:
  explicit Receiver(ReceiverOptions options) : options_(options), arrivals_(options.arrivals) {}

  /// The delivery, or why there is none. Counts either.
  tl::expected<schema::DeliveryPtr, Refusal> on_frames(Frames frames, Instant now);
  /// So many messages were let go unread.
  void on_overrun(std::uint64_t count);
  const ReceiverStats& stats() const { return stats_; }

 private:
  tl::expected<schema::DeliveryPtr, Refusal> judge(Frames frames, Instant now);
  tl::expected<schema::DeliveryPtr, Refusal> accept(const Header& header, schema::Message message,
                                                    Instant now);
  SenderStats& stats_of(const std::string& sender);

  ReceiverOptions options_;
  ReceiverStats stats_;
  schema::Arrivals arrivals_;
};

}  // namespace signalbox::bus
