// The fourth frame: who wrote the three before it. docs/messages.md has the bytes.
#pragma once

#include <span>
#include <string_view>

#include "messages/bus/keys.hpp"
#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::bus {

/// What a proof is over.
struct Signed {
  std::string_view topic;
  std::span<const std::uint8_t> envelope;
  std::span<const std::uint8_t> body;
};

schema::Bytes make_proof(const Keyring& keyring, schema::Protection protection, const Signed& content);
/// False if it is missing, of another form or generation, or wrong.
bool check_proof(const Keyring& keyring, schema::Protection protection, const Member& author,
                 const Signed& content, std::span<const std::uint8_t> proof);

}  // namespace signalbox::bus
