// One batch of an engine's KV cache events, as vLLM and SGLang publish them in MessagePack:
//
//   [ts, [event...], rank]        event: ["BlockStored", hashes, parent, tokens, block_size, ...], any prefix of it,
//                                        or {"type": "BlockStored", "block_hashes": ..., ...} since vLLM 0.24
//
// Counted, not indexed: the hashes are over tokens and seeded per process, and no router has a tokeniser to match them to
// prompts with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "messages/base/result.hpp"

namespace signalbox::engine_proxy {

/// What a batch does to the blocks in the engine's GPU memory of its main attention; other tiers and groups are left out.
struct KvCounts {
  std::uint64_t stored = 0, removed = 0;  ///< blocks
  std::uint64_t clears = 0;               ///< of the whole cache
  std::uint64_t stored_since_clear = 0;   ///< since the last of these, or since the batch began
  std::uint64_t removed_since_clear = 0;
  std::uint64_t skipped = 0;       ///< events of an unknown kind or shape; the others count
  std::uint32_t block_tokens = 0;  ///< 0: not said
  std::uint64_t fingerprint = 0;  ///< of the batch's bytes: tells whether two of the same number are the same
};

/// Errors: invalid for bytes that are no batch at all.
Result<KvCounts> read_kv_batch(std::span<const std::uint8_t> bytes);

}  // namespace signalbox::engine_proxy
