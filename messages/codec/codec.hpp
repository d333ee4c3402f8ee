// Every encoding of every message, derived from its fields(). No message has code of its own here.
//
// Body: a MessagePack map from field number to value. Unknown numbers are skipped, missing ones keep their
// defaults, absent optionals are left out. The forms of values and of bulk rows are in docs/messages.md,
// which describe_catalog() writes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "messages/base/result.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::codec {

using schema::Bytes;

/// The body of a message. Never fails; what is out of bounds is refused by schema::check and by decode.
Bytes encode(const schema::Message& message);

/// The message of a body. Total size, depth, counts and memory are bounded before anything is allocated; then
/// the fields are checked against their declarations. not_found for an unknown kind, too_large over a limit,
/// else invalid.
Result<schema::Message> decode(std::uint16_t kind, std::span<const std::uint8_t> body);

/// The envelope as a fixed array of 9 elements; a later version may append elements.
Bytes encode(const schema::Envelope& envelope);
Result<schema::Envelope> decode_envelope(std::span<const std::uint8_t> bytes);
/// The longest envelope that is looked at, in bytes.
inline constexpr std::size_t max_envelope_bytes = 512;

/// One line of JSON: fields by name in the order of declaration, enums by name, durations in seconds under
/// "<name>_s", digests and bytes in hex, absent optionals left out, indices of nothing as null.
std::string to_json(const schema::Message& message);
/// {"topic", "message", "source", "incarnation", "sequence", "age_s", ..., "body"}: what the tap prints.
std::string to_json(const schema::Delivery& delivery);

/// docs/messages.md, whole.
std::string describe_catalog();

}  // namespace signalbox::codec
