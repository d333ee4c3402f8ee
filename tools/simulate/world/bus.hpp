// The bus in memory: messages reach every node that hears their kind, after the network's delay; a node that comes late is
// given the last value of each topic. What arrives is judged as the real bus judges it: repetitions, overtaken values,
// dead incarnations and what is too old are dropped. Bodies are shared, not encoded.
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

#include "messages/schema/arrivals.hpp"
#include "messages/schema/catalog.hpp"
#include "tools/simulate/world/event_queue.hpp"

namespace signalbox::simulate {

/// A machine on the bus.
using MemberId = std::uint32_t;

/// What the network makes of one message to one member.
struct Passage {
  std::optional<Duration> delay;  ///< nothing: it is lost
  std::optional<Duration> again;  ///< of a second copy
  bool in_order = true;           ///< not before what was sent earlier on this way

  Passage(std::optional<Duration> on_time = {}) : delay(on_time) {}  // NOLINT: a delay is a passage
};

class Bus {
 public:
  using Network = std::function<Passage(MemberId from, MemberId to)>;
  using Receive = std::function<void(const schema::Delivery&)>;
  /// Told of every message that is said, before it travels.
  using Tap = std::function<void(const schema::Message&, const schema::Envelope&)>;

  /// Whether a member hears what would be dropped.
  using LetIn = std::function<bool(MemberId to, const schema::Delivery&, schema::Unwelcome)>;

  Bus(EventQueue& queue, Network network) : queue_(queue), network_(std::move(network)) {}
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  void set_tap(Tap tap) { tap_ = std::move(tap); }
  void set_let_in(LetIn let_in) { let_in_ = std::move(let_in); }
  /// `member` hears these messages from now on, and first what was said before of those that may be kept.
  void join(MemberId member, std::span<const std::string_view> hears, Receive receive);
  /// Nothing reaches it any more, not even what is on its way.
  void leave(MemberId member);
  /// An author's message. Refuses one that breaks its declaration: then the author has a defect.
  Status say(MemberId author, const ProcessName& name, const Incarnation& incarnation,
             schema::Message message);

  std::uint64_t said() const { return said_; }
  std::uint64_t delivered() const { return delivered_; }
  /// What arrived and was dropped, by reason.
  const std::map<schema::Unwelcome, std::uint64_t>& dropped() const { return dropped_; }

 private:
  struct Member {
    std::set<std::string, std::less<>> hears;
    Receive receive;
    std::uint64_t life = 0;
    schema::Arrivals arrivals{{}};
  };
  struct Kept {
    std::shared_ptr<const schema::Delivery> message;
    MemberId author = 0;
    Instant said;
  };
  /// `hop`: the time that it lay in a cache.
  void send(MemberId author, MemberId to, std::shared_ptr<const schema::Delivery> message,
            std::optional<Duration> hop);
  void arrive(MemberId to, std::uint64_t life, const schema::Delivery& message, std::optional<Duration> hop);

  EventQueue& queue_;
  Network network_;
  Tap tap_;
  LetIn let_in_;
  std::map<MemberId, Member> members_;
  std::map<std::string, Kept> kept_;  ///< by topic
  std::map<std::pair<MemberId, std::string>, std::uint64_t> sequences_;
  std::map<std::pair<MemberId, MemberId>, Instant> last_arrival_;
  std::map<schema::Unwelcome, std::uint64_t> dropped_;
  std::uint64_t lives_ = 0, said_ = 0, delivered_ = 0;
};

}  // namespace signalbox::simulate
