// What travels beside every body, and what a receiver makes of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::schema {

/// The envelope: a fixed array on the wire, in this order.
struct Envelope {
  ProcessName source;
  Incarnation incarnation;
  std::uint64_t sequence = 0;            ///< from 1, per (source, incarnation, topic)
  Duration sent{};                       ///< the sender's monotonic time
  Duration sent_wall{};                  ///< the sender's wall time since 1970: for display only
  std::uint16_t kind = 0;                ///< MessageInfo::kind
  std::uint16_t version = 0;             ///< MessageInfo::version at the sender
  std::uint64_t config_fingerprint = 0;  ///< of the sender's configuration

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

}  // namespace signalbox::schema
