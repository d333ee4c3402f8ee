// A process's place on the bus: one thread owns all its sockets. Publishing goes to every forwarder; what is
// received from any of them is checked, freed of duplicates and handed over once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "messages/bus/endpoint.hpp"
#include "messages/bus/keys.hpp"
#include "messages/bus/stats.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::bus {

/// The frames of one message as they arrived: topic, envelope, body, proof, and, if it came out of a
/// forwarder's cache, hop.
using FrameView = std::span<const std::uint8_t>;
using Frames = std::span<const FrameView>;

struct NodeOptions {
  Identity identity;
  Incarnation incarnation;
  std::vector<ForwarderEndpoints> forwarders;
  std::optional<Keyring> keyring;  ///< absent: security none, only where check_endpoint allows it
  std::vector<std::string>
      subscriptions;  ///< topic prefixes; the latest values come first, then what is said
  std::uint64_t config_fingerprint = 0;
  std::size_t queue_messages = 8192;  ///< published but not yet sent
  std::size_t queue_bytes = 64u << 20;
  Duration linger = 200ms;          ///< how long stop() waits for what is not yet on the wire
  Duration heartbeat = 300ms;       ///< between ZMTP pings
  Duration heartbeat_timeout = 2s;  ///< silence after which a connection is given up
};

/// Called in the bus thread: hand over and return.
struct NodeHandlers {
  std::function<void(schema::DeliveryPtr)> on_delivery;
  /// A message was dropped; duplicates are not told. `sender` is what it claims.
  std::function<void(Drop reason, std::string_view sender, std::string_view topic, const Error& why)> on_drop;
  /// The frames of what is delivered, before it is handed over; for recordings.
  std::function<void(Frames frames, const schema::Delivery& delivery, Instant arrived)> on_accepted;
};

class Node {
 public:
  /// Connects; does not wait for forwarders, which may come later. The clock of all instants is
  /// CLOCK_MONOTONIC.
  static Result<std::unique_ptr<Node>> start(NodeOptions options, NodeHandlers handlers);
  virtual ~Node() = default;

  /// Queues a message for its topic; thread-safe. Refused if it breaks its declaration, if our role may not
  /// say it, or (unavailable) if the queue is full. Latest values are sent again to a forwarder that
  /// (re)joins.
  virtual Status publish(const schema::Message& message) = 0;
  /// Adds or ends subscriptions to a topic prefix; thread-safe.
  virtual void subscribe(std::string prefix) = 0;
  virtual void unsubscribe(std::string prefix) = 0;
  /// Thread-safe.
  virtual NodeStats stats() const = 0;
  /// Sends what is queued within `linger`, then closes. No handler is called after it returns. Idempotent;
  /// the destructor calls it.
  virtual void stop() = 0;
};

}  // namespace signalbox::bus
