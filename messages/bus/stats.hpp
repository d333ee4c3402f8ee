// What a process counts of the bus. Counters only rise.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "messages/bus/drop.hpp"

namespace signalbox::bus {

/// Of one sender, as it claims to be; the empty name gathers what no member is known to have sent.
struct SenderStats {
  std::uint64_t accepted = 0;
  std::array<std::uint64_t, enum_size<Drop>> dropped{};  ///< by reason
  std::uint64_t missed = 0;                              ///< sequence numbers jumped over
  std::uint64_t recovered = 0;                           ///< of these, arrived after all
  std::uint64_t fingerprint_mismatches = 0;              ///< accepted, under another configuration than ours

  std::uint64_t dropped_for(Drop reason) const { return dropped[static_cast<std::size_t>(reason)]; }
  SenderStats& operator+=(const SenderStats& other);
};

struct ReceiverStats {
  std::map<std::string, SenderStats> senders;
  SenderStats total() const;
};

struct NodeStats {
  ReceiverStats received;
  std::uint64_t published = 0;
  std::uint64_t publish_refused = 0;    ///< queue full, out of bounds, too large
  std::uint64_t not_sent = 0;           ///< a forwarder was away or its queue full
  std::uint32_t forwarders_joined = 0;  ///< forwarders that take what we publish now
};

struct ForwarderStats {
  std::uint64_t forwarded = 0;
  std::uint64_t thinned = 0;  ///< long values held back for their topic's rate; the newest of them goes out
  std::uint64_t replayed = 0;
  std::uint64_t keys_refused = 0;  ///< handshakes refused: a key that the directory does not know
  std::map<std::string, SenderStats> senders;
  std::uint64_t cached_topics = 0;
  std::uint64_t cached_bytes = 0;
  std::uint64_t cache_evicted = 0;  ///< values let go because the cache was full
  std::vector<ProcessName>
      listened;         ///< names of messages that are not kept and that somebody listens to, sorted
  Instant last_turn{};  ///< of its loop, which turns each second at least
  SenderStats total() const;
};

}  // namespace signalbox::bus
