// What a client asks for, read from the JSON body of an OpenAI-shaped request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"

namespace signalbox::engine_sim {

enum class Endpoint : std::uint8_t { chat, completion, embedding, response };

/// The endpoint behind a path such as "/v1/chat/completions".
std::optional<Endpoint> endpoint_of(std::string_view path);

struct Ask {
  Endpoint endpoint = Endpoint::chat;
  std::string model;
  std::string prompt;  ///< rendered: every message as "role\ncontent\n", then "assistant\n"
  std::string said;    ///< vLLM's continue_final_message: the begin of the answer, which goes on from there
  std::vector<std::string> inputs;          ///< of embeddings
  std::optional<std::uint32_t> max_tokens;  ///< max_tokens, max_completion_tokens or max_output_tokens
  std::string cache_salt;                   ///< vLLM's: keeps this request's cache apart
  std::uint32_t dimensions = 64;            ///< of embeddings
  bool stream = false;
  bool include_usage = false;
  bool ignore_eos = false;  ///< vLLM's: the answer goes on to max_tokens
  bool base64 = false;      ///< embeddings as base64 of little-endian floats
};

/// Errors: invalid, with the faulty parameter in `where`.
Result<Ask> read_ask(Endpoint endpoint, std::string_view body);

}  // namespace signalbox::engine_sim
