// Every message there is. A new one is a struct in a header beside this one, and a line here.
#pragma once

#include <memory>
#include <variant>

#include "messages/schema/control.hpp"
#include "messages/schema/envelope.hpp"
#include "messages/schema/health.hpp"
#include "messages/schema/plan.hpp"
#include "messages/schema/signals.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::schema {

using Message = std::variant<EngineSignal, EngineProfile, CacheDigest, EngineFarewell,   //
                             HealthVerdict, Alert,                                       //
                             FleetTable, RoutingSnapshot, KeepAlive, SnapshotReceipt,    //
                             DemandReport, OutcomeReport, SentPrefixes, DecisionRecord,  //
                             Policy, Beat, Order, OrderReceipt>;

inline constexpr std::size_t message_count = std::variant_size_v<Message>;

/// The declarations of all messages, in the order of the variant.
const std::array<MessageInfo, message_count>& catalog();

/// The declaration of that kind, or nullptr.
const MessageInfo* find_info(std::uint16_t kind);
const MessageInfo* find_info(std::string_view name);

/// The declaration of a message's type.
const MessageInfo& info_of(const Message& message);

/// The topic of a message said by `author`: the pattern with each <placeholder> replaced by the field of that
/// name, else by the author's id.
std::string topic_of(const Message& message, const ProcessName& author);

/// Topic prefix of a message type: everything before its first placeholder; what a subscriber to all of it
/// asks for.
std::string_view topic_root(const MessageInfo& info);

/// Every field within its declared bounds, finite, no duplicate rows where that matters: what a receiver may
/// rely on.
Status check(const Message& message);

/// A message as received: with its envelope and its age on arrival at `received` by the receiver's clock.
struct Delivery {
  Envelope envelope;
  std::string topic;
  Duration age{};  ///< estimated time since it was sent, without synchronised clocks
  Message message;
};
using DeliveryPtr = std::shared_ptr<const Delivery>;

}  // namespace signalbox::schema
