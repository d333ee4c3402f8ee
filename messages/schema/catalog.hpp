// Every message there is. A new one is a struct in a header beside this one, and a line here.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "messages/schema/calibration.hpp"
#include "messages/schema/control.hpp"
#include "messages/schema/envelope.hpp"
#include "messages/schema/fleet_table.hpp"
#include "messages/schema/health.hpp"
#include "messages/schema/inputs.hpp"
#include "messages/schema/plan.hpp"
#include "messages/schema/signals.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::schema {

using MessageVariant = std::variant<EngineSignal, EngineProfile, CacheDigest, EngineFarewell,              //
                                    HealthVerdict, Alert,                                                  //
                                    FleetTable, RoutingSnapshot, KeepAlive, SnapshotReceipt, Calibration,  //
                                    DemandReport, OutcomeReport, SentPrefixes, DecisionRecord,             //
                                    DecisionInputs,                                                        //
                                    Policy, Beat, Order, OrderReceipt, Interest>;

template <std::size_t I>
using MessageType = std::variant_alternative_t<I, MessageVariant>;

inline constexpr std::size_t message_count = std::variant_size_v<MessageVariant>;

template <class T, class Variant = MessageVariant>
inline constexpr bool is_message = false;
template <class T, class... All>
inline constexpr bool is_message<T, std::variant<All...>> = (std::is_same_v<T, All> || ...);

/// One message of any type: a variant whose copies, moves and destruction are compiled once, in catalog.cpp, and
/// not in every file that handles a message.
class Message : public MessageVariant {
 public:
  Message();
  Message(const Message&);
  Message(Message&&) noexcept;
  Message& operator=(const Message&);
  Message& operator=(Message&&) noexcept;
  ~Message();

  template <class T>
  requires is_message<std::remove_cvref_t<T>> Message(T&& message)
      : MessageVariant(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(message)) {}
};

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
