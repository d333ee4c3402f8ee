// What prompts are made of, without text: runs of tokens, each with an id. Equal runs at equal places are equal content,
// so hashes of blocks of any size agree exactly where two prompts do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace signalbox::simulate {

struct Run {
  std::uint64_t id = 0;
  std::uint32_t tokens = 0;
};
using Content = std::vector<Run>;

std::uint64_t tokens_of(std::span<const Run> content);

/// Chained hashes of the whole blocks of `block_tokens`; none is 0. `key` keeps tenants or models apart.
std::vector<std::uint64_t> block_hashes(std::span<const Run> content, std::uint32_t block_tokens,
                                        std::uint64_t key, std::size_t at_most = SIZE_MAX);

}  // namespace signalbox::simulate
