// What the catalog knows about a message beside its fields.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "messages/base/time.hpp"
#include "messages/base/words.hpp"

namespace signalbox::schema {

/// How a message proves who wrote it.
enum class Protection : std::uint8_t {
  mac,        ///< a keyed hash under the fleet's key: frequent, replaceable facts
  signature,  ///< Ed25519 by its author: what changes where traffic goes
};

/// A set of roles, as bits.
struct Roles {
  std::uint32_t bits = 0;
  constexpr Roles(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits |= 1u << static_cast<unsigned>(role);
  }
  /// False for a value that is no role: it may come from outside.
  constexpr bool has(Role role) const {
    const auto at = static_cast<unsigned>(role);
    return at < 32 && (bits >> at & 1u) != 0;
  }
};

inline constexpr Roles every_role{Role::engine_proxy,   Role::health_monitor, Role::global_optimizer,
                                  Role::cluster_router, Role::policy_keeper,  Role::feedback_balancer,
                                  Role::forwarder,      Role::tool,           Role::auditor,
                                  Role::module};

/// Declared once per message, as `static constexpr MessageInfo info`.
struct MessageInfo {
  std::uint16_t kind;     ///< its number on the wire; never reused
  std::uint16_t version;  ///< raised when a field is added
  std::string_view name;
  /// Its topic with <placeholders>: each is the field of that name, or, where no field has it, the author's
  /// process id.
  std::string_view topic;
  std::string_view sentence;  ///< what it says, for docs and the tap
  Roles authors;              ///< who may say it
  Protection protection;
  Duration keep;  ///< how long a forwarder may hand the latest value to late subscribers; zero: not at all
  std::uint32_t max_bytes;  ///< of the encoded body
};

}  // namespace signalbox::schema
