#include "actors/cluster_router/routing/request.hpp"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the same hashes by the widest vectors that the processor has
#else
#include <xxhash.h>
#endif

#include <algorithm>

namespace signalbox::routing {

std::uint64_t tenant_key(std::uint64_t fleet_secret, std::string_view tenant) {
  return XXH3_64bits_withSeed(tenant.data(), tenant.size(), fleet_secret);
}

void hash_prompt_blocks(std::span<const char> prompt, std::uint64_t key, std::size_t block_bytes,
                        PromptBlocks& out) {
  const std::size_t blocks = std::min(prompt.size() / block_bytes, max_prompt_blocks);
  out.clear();
  out.reserve(blocks);
  std::uint64_t chain = key;
  for (std::size_t i = 0; i < blocks; ++i) {
    chain = XXH3_64bits_withSeed(prompt.data() + i * block_bytes, block_bytes, chain);
    out.push_back(chain);
  }
}

}  // namespace signalbox::routing
