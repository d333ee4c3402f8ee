// The middle of the bus: takes what members say, refuses what they may not say, keeps the latest value of
// each topic, passes it on. It reads envelopes, never bodies.
//
// A subscriber that wants the latest values subscribes to "@<nonce>/<prefix>" beside "<prefix>", with a nonce
// that nobody else uses: the values come on topics with that nonce in front, so that only it gets them, and
// carry a fifth frame `hop`, the value's age in caches in nanoseconds (unsigned, little-endian, 8 bytes).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "messages/bus/endpoint.hpp"
#include "messages/bus/keys.hpp"
#include "messages/bus/node.hpp"
#include "messages/bus/stats.hpp"

namespace signalbox::bus {

struct ForwarderOptions {
  ForwarderEndpoints endpoints;    ///< to bind; port 0 of tcp takes any free one
  std::optional<Keyring> keyring;  ///< absent: security none
  std::size_t cache_bytes = 256u << 20;
  std::size_t cache_topics = 100'000;
  std::size_t bulk_bytes_per_s = 4u << 20;  ///< of one topic with long values: newer ones replace what waits
  Duration heartbeat = 300ms;
  Duration heartbeat_timeout = 2s;
};

class Forwarder {
 public:
  /// Binds and starts its thread. conflict if another process holds an ipc path or a port.
  static Result<std::unique_ptr<Forwarder>> start(ForwarderOptions options);
  virtual ~Forwarder() = default;
  /// As bound: with port numbers instead of 0.
  virtual const ForwarderEndpoints& endpoints() const = 0;
  /// Thread-safe.
  virtual ForwarderStats stats() const = 0;
  /// Closes the sockets and ends the thread. Idempotent; the destructor calls it.
  virtual void stop() = 0;
};

/// The process `signalbox run forwarder`: a forwarder, and a node on the bus that beats for it.
struct ForwarderProcess {
  ForwarderOptions forwarder;
  NodeOptions node;  ///< identity with role forwarder; its forwarders include this one
  Duration beat = 1s;
  std::string operator_endpoint;  ///< said in beats
  /// Told what it beats, with its counters.
  std::function<void(const schema::Beat&, const ForwarderStats&)> on_beat;
};
/// Runs until `stop` is requested; the error if it cannot start.
Status run_forwarder(ForwarderProcess process, std::stop_token stop);

}  // namespace signalbox::bus
