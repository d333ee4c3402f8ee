#include "tools/simulate/world/content.hpp"

#include <algorithm>

#include "messages/base/rng.hpp"

namespace signalbox::simulate {

std::uint64_t tokens_of(std::span<const Run> content) {
  std::uint64_t tokens = 0;
  for (const Run& run : content) tokens += run.tokens;
  return tokens;
}

std::vector<std::uint64_t> block_hashes(std::span<const Run> content, std::uint32_t block_tokens,
                                        std::uint64_t key, std::size_t at_most) {
  std::vector<std::uint64_t> hashes;
  std::uint64_t chain = mix64(key);
  std::uint32_t left = block_tokens;  // of the current block
  for (const Run& run : content) {
    for (std::uint32_t at = 0; at < run.tokens && hashes.size() < at_most;) {
      const std::uint32_t taken = std::min(left, run.tokens - at);
      chain = mix64(chain ^ mix64(run.id + mix64((std::uint64_t{at} << 32) | taken)));
      at += taken;
      left -= taken;
      if (left > 0) continue;
      hashes.push_back(chain | 1);
      left = block_tokens;
    }
  }
  return hashes;
}

}  // namespace signalbox::simulate
