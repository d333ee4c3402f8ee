// Text and tokens without a tokeniser: a token is four bytes. Answers are made of such tokens, so a conversation that
// quotes an earlier answer has the same bytes at the same places, and the prefix cache sees it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/engine_sim/machine/blocks.hpp"

namespace signalbox::engine_sim {

inline constexpr std::size_t bytes_per_token = 4;

/// Tokens of a text, the last one perhaps short.
std::uint32_t count_tokens(std::string_view text);

/// The n-th token of the answer to `prompt_hash`: four bytes, the last one a space.
std::string_view answer_token(std::uint64_t prompt_hash, std::uint32_t n);

/// A seed of the answer and of the cache: the model and an optional salt keep their texts apart.
std::uint64_t hash_text(std::string_view text, std::uint64_t seed);

/// Chained hashes of the full blocks of prompt and answer; none is 0.
std::vector<BlockHash> hash_blocks(std::string_view prompt_and_answer, std::uint32_t block_tokens,
                                   std::uint64_t seed);

}  // namespace signalbox::engine_sim
