#include "messages/base/digest.hpp"

#include <sodium.h>

namespace signalbox {

namespace {
int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}
}  // namespace

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string Digest::hex() const { return to_hex(bytes); }

std::uint64_t Digest::fingerprint() const {
  std::uint64_t out = 0;
  for (int i = 7; i >= 0; --i) out = out << 8 | bytes[static_cast<std::size_t>(i)];
  return out;
}

Result<Digest> Digest::from_hex(std::string_view text) {
  Digest out;
  if (text.size() != out.bytes.size() * 2) return invalid("a digest has 64 hexadecimal digits");
  for (std::size_t i = 0; i < out.bytes.size(); ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return invalid("a digest has 64 hexadecimal digits");
    out.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return out;
}

Digest digest_of(std::span<const std::uint8_t> bytes) {
  Digest out;
  crypto_generichash(out.bytes.data(), out.bytes.size(), bytes.data(), bytes.size(), nullptr, 0);
  return out;
}

Digest keyed_digest(std::span<const std::uint8_t> key, std::string_view text) {
  Digest out;
  crypto_generichash(out.bytes.data(), out.bytes.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), key.data(), key.size());
  return out;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return sodium_memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

Digest digest_of(std::string_view text) {
  return digest_of(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

}  // namespace signalbox
