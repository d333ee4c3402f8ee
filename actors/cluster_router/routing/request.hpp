// What the router knows of one request. There is no place here for its text: of the prompt only its size and keyed
// hashes of its blocks leave the parser.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "messages/base/criticality.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::routing {

/// Prompt bytes hashed into one block, about 256 tokens. All routers of a fleet use the same.
inline constexpr std::uint32_t default_block_bytes = 1024;
/// Blocks hashed per request: what comes after them is priced as not cached.
inline constexpr std::size_t max_prompt_blocks = 512;
/// Bytes of prompt taken for one token where nothing better is known.
inline constexpr double bytes_per_token = 4.0;

/// Chained hashes of the whole blocks of a prompt: equal at i exactly when the prompts agree up to the end of block i.
using PromptBlocks = std::vector<std::uint64_t>;

/// The key of one tenant's hashes: prompts of different tenants never match, and a hash says nothing to who lacks the
/// fleet's secret.
std::uint64_t tenant_key(std::uint64_t fleet_secret, std::string_view tenant);

/// Hashes `prompt` in blocks of `block_bytes` (> 0) by XXH3-64, chained and keyed; at most max_prompt_blocks. Replaces
/// `out`. Once per request, on arrival.
void hash_prompt_blocks(std::span<const char> prompt, std::uint64_t key, std::size_t block_bytes,
                        PromptBlocks& out);

/// One request as parsed. The views need to live only during Dispatcher::begin().
struct RequestFacts {
  std::string_view tenant;
  std::string_view model;
  std::string_view version;          ///< "3.1"; empty: the newest
  std::optional<Criticality> asked;  ///< what the client asks for
  std::uint64_t session_hash = 0;    ///< 0: no session
  std::optional<Duration> deadline;  ///< since arrival, as the client asks
  std::uint64_t prompt_bytes = 0;    ///< of the prompt's text
  std::optional<std::uint64_t>
      prompt_tokens;                    ///< where the client sent tokens; else estimated from the bytes
  std::uint64_t max_output_tokens = 0;  ///< 0: not said
  bool stream = false;
  bool stateful = false;           ///< store, previous_response_id, background: never sent twice
  std::string_view pinned_engine;  ///< name of the engine that keeps its state; empty: none
  PromptBlocks blocks;             ///< empty: no cache knowledge for it

  double estimated_prompt_tokens() const {
    return prompt_tokens ? static_cast<double>(*prompt_tokens)
                         : static_cast<double>(prompt_bytes) / bytes_per_token;
  }
};

/// What the engine's answer said of its size; counted chunks where it said nothing.
struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::optional<std::uint64_t> cached_tokens;  ///< absent: the engine does not say
  std::uint64_t output_tokens = 0;
};

}  // namespace signalbox::routing
