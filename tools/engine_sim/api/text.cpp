#include "tools/engine_sim/api/text.hpp"

#include <xxhash.h>

#include <array>

#include "messages/base/rng.hpp"

namespace signalbox::engine_sim {
namespace {
constexpr std::array<std::string_view, 32> words{
    "the ", "box ", "set ", "key ", "way ", "car ", "run ", "rod ", "arm ", "red ", "day ",
    "sun ", "air ", "oak ", "ash ", "sea ", "sky ", "map ", "log ", "bit ", "sum ", "one ",
    "two ", "six ", "ten ", "new ", "old ", "far ", "and ", "for ", "you ", "all "};
}

std::uint32_t count_tokens(std::string_view text) {
  return static_cast<std::uint32_t>((text.size() + bytes_per_token - 1) / bytes_per_token);
}

std::string_view answer_token(std::uint64_t prompt_hash, std::uint32_t n) {
  return words[mix64(prompt_hash + n) % words.size()];
}

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::vector<BlockHash> hash_blocks(std::string_view text, std::uint32_t block_tokens, std::uint64_t seed) {
  const std::size_t block_bytes = std::size_t{block_tokens} * bytes_per_token;
  std::vector<BlockHash> hashes;
  hashes.reserve(text.size() / block_bytes);
  BlockHash chain = seed;
  for (std::size_t at = 0; at + block_bytes <= text.size(); at += block_bytes) {
    chain = hash_text(text.substr(at, block_bytes), chain);
    if (chain == 0) chain = 1;
    hashes.push_back(chain);
  }
  return hashes;
}

}  // namespace signalbox::engine_sim
