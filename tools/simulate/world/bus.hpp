// The bus in memory: messages reach every node that hears their kind, after the network's delay, in order per pair of
// nodes; a node that comes late is given the last value of each topic. Bodies are shared, not encoded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/schema/catalog.hpp"
#include "tools/simulate/world/event_queue.hpp"

namespace signalbox::simulate {

/// A machine on the bus.
using MemberId = std::uint32_t;

class Bus {
 public:
  /// How long a message takes from one member to another; nothing: it is lost.
  using Network = std::function<std::optional<Duration>(MemberId from, MemberId to)>;
  using Receive = std::function<void(const schema::Delivery&)>;
  /// Told of every message that is said, before it travels.
  using Tap = std::function<void(const schema::Message&, const schema::Envelope&)>;

  Bus(EventQueue& queue, Network network) : queue_(queue), network_(std::move(network)) {}
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  void set_tap(Tap tap) { tap_ = std::move(tap); }
  /// `member` hears these messages from now on, and first what was said before of those that may be kept.
  void join(MemberId member, std::span<const std::string_view> hears, Receive receive);
  /// Nothing reaches it any more, not even what is on its way.
  void leave(MemberId member);
  /// An author's message. Refuses one that breaks its declaration: then the author has a defect.
  Status say(MemberId author, const ProcessName& name, const Incarnation& incarnation,
             schema::Message message);

  std::uint64_t said() const { return said_; }
  std::uint64_t delivered() const { return delivered_; }

 private:
  struct Member {
    std::set<std::string, std::less<>> hears;
    Receive receive;
    std::uint64_t life = 0;
  };
  struct Kept {
    std::shared_ptr<const schema::Delivery> message;
    MemberId author = 0;
    Instant said;
  };
  void send(MemberId author, MemberId to, std::shared_ptr<const schema::Delivery> message, Instant said);

  EventQueue& queue_;
  Network network_;
  Tap tap_;
  std::map<MemberId, Member> members_;
  std::map<std::string, Kept> kept_;  ///< by topic
  std::map<std::pair<MemberId, std::string>, std::uint64_t> sequences_;
  std::map<std::pair<MemberId, MemberId>, Instant> last_arrival_;
  std::uint64_t lives_ = 0, said_ = 0, delivered_ = 0;
};

}  // namespace signalbox::simulate
