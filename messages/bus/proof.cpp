#include "messages/bus/proof.hpp"

#include <sodium.h>

namespace signalbox::bus {

namespace {

using schema::Protection;

constexpr std::string_view domain = "signalbox.1";
constexpr std::size_t head_bytes = 2;  // scheme, generation

std::uint8_t scheme_of(Protection protection) { return protection == Protection::mac ? 1 : 2; }

/// BLAKE2b-256 over the domain and each part behind its length, so that no two contents give the same bytes.
Key32 hash(const Signed& content, const Key32* key) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key == nullptr ? nullptr : key->data(), key == nullptr ? 0 : key->size(),
                          32);
  const auto add = [&](const void* data, std::size_t size) {
    crypto_generichash_update(&state, static_cast<const unsigned char*>(data), size);
  };
  const auto add_part = [&](const void* data, std::size_t size) {
    std::array<std::uint8_t, 8> length;
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(std::uint64_t{size} >> (8 * i));
    add(length.data(), length.size());
    add(data, size);
  };
  add(domain.data(), domain.size());
  add_part(content.topic.data(), content.topic.size());
  add_part(content.envelope.data(), content.envelope.size());
  add_part(content.body.data(), content.body.size());
  Key32 out;
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

}  // namespace

schema::Bytes make_proof(const Keyring& keyring, Protection protection, const Signed& content) {
  schema::Bytes out{scheme_of(protection), keyring.generation};
  if (protection == Protection::mac) {
    const Key32 mac = hash(content, &keyring.fleet_mac);
    out.insert(out.end(), mac.begin(), mac.end());
  } else {
    const Key32 digest = hash(content, nullptr);
    out.resize(head_bytes + crypto_sign_BYTES);
    crypto_sign_detached(out.data() + head_bytes, nullptr, digest.data(), digest.size(),
                         keyring.sign_secret.data());
  }
  return out;
}

bool check_proof(const Keyring& keyring, Protection protection, const Member& author, const Signed& content,
                 std::span<const std::uint8_t> proof) {
  const std::size_t size = protection == Protection::mac ? 32 : crypto_sign_BYTES;
  if (proof.size() != head_bytes + size || proof[0] != scheme_of(protection)) return false;
  const bool is_other = proof[1] != keyring.generation;
  if (is_other && (proof[1] != keyring.other_generation || !author.other)) return false;
  const std::uint8_t* given = proof.data() + head_bytes;
  if (protection == Protection::mac) {
    const Key32 mac = hash(content, is_other ? &keyring.other_mac : &keyring.fleet_mac);
    return sodium_memcmp(mac.data(), given, mac.size()) == 0;
  }
  const Key32 digest = hash(content, nullptr);
  const Key32& key = is_other ? author.other->sign : author.keys.sign;
  return crypto_sign_verify_detached(given, digest.data(), digest.size(), key.data()) == 0;
}

}  // namespace signalbox::bus
