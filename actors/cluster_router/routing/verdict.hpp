// What the dispatcher answers: where to send a request, how long to wait, or why not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

/// A request inside one dispatcher. Valid from begin() until its verdict is Refuse or one of finished(), client_left()
/// was called; a stale ticket is recognised and ignored.
struct Ticket {
  std::uint32_t slot = UINT32_MAX;
  std::uint32_t generation = 0;
  friend bool operator==(Ticket, Ticket) = default;
};

/// Names one decision for as long as the router's process lives: a tag of this life, and a count.
struct DecisionId {
  std::uint64_t life = 0;
  std::uint64_t count = 0;  ///< its event loop is count modulo the number of loops
  friend bool operator==(const DecisionId&, const DecisionId&) = default;
};

/// "8 characters-count", in Crockford's base 32, lower case: for headers and log lines.
std::string to_string(const DecisionId& id);
/// The id of that text, or nothing.
std::optional<DecisionId> parse_decision_id(std::string_view text);

/// Send it there. All limits count from now; none is infinite.
struct Forward {
  EngineIndex engine;
  std::uint32_t attempt = 1;  ///< counts from 1
  Duration connect{};
  Duration first_byte{};  ///< of the answer's head
  Duration gap{};         ///< between two chunks
  Duration total{};       ///< left of the request's whole time
  Duration hedge{};       ///< without a first byte until then, ask Dispatcher::hedge(); zero: never
};

/// Keep it: next_ready() hands it back, by `until` at the latest.
struct Wait {
  Instant until;
};

/// Answer this to the client; the ticket is closed.
struct Refuse {
  schema::RefuseReason reason = schema::RefuseReason::no_engine;
  std::uint16_t status = 503;
  Duration retry_after{};  ///< zero: send none
};

using Verdict = std::variant<Forward, Wait, Refuse>;

}  // namespace signalbox::routing
