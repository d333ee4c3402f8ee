// Content hashes: BLAKE2b-256 (RFC 7693) by libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "messages/base/result.hpp"

namespace signalbox {

/// 32 bytes that name a content: a policy, a fleet table, a snapshot.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  bool is_zero() const { return *this == Digest{}; }
  /// 64 lower-case hexadecimal digits.
  std::string hex() const;
  /// The first 12 digits: enough for a person to compare.
  std::string brief() const { return hex().substr(0, 12); }
  /// The first 8 bytes, little-endian: a fingerprint for envelopes.
  std::uint64_t fingerprint() const;
  static Result<Digest> from_hex(std::string_view text);
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

/// BLAKE2b-256 of these bytes.
Digest digest_of(std::span<const std::uint8_t> bytes);
Digest digest_of(std::string_view text);

/// BLAKE2b-256 of the text, keyed: says nothing of the text to who lacks the key (16 to 64 bytes).
Digest keyed_digest(std::span<const std::uint8_t> key, std::string_view text);
/// Takes the same time wherever they differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

/// Lower-case hexadecimal of any bytes, and back.
std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace signalbox
