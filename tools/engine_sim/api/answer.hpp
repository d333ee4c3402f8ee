// Answers in OpenAI's shapes: whole, or as the events of a stream (each already framed as server-sent event).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/engine_sim/api/ask.hpp"

namespace signalbox::engine_sim {

/// What all parts of one answer repeat.
struct AnswerHead {
  Endpoint endpoint = Endpoint::chat;
  std::string id;
  std::string model;
  std::int64_t created_s = 0;  ///< wall time, seconds since 1970
};

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t completion_tokens = 0;
};

std::string whole_answer(const AnswerHead& head, std::string_view text, std::string_view finish_reason,
                         const Usage& usage);

/// The first event: the role chunk of a chat, `response.created`, nothing for completions.
std::string stream_start(const AnswerHead& head);
std::string stream_text(const AnswerHead& head, std::string_view text);
/// The last events: finish reason, usage where asked for, "[DONE]".
std::string stream_end(const AnswerHead& head, std::string_view whole_text, std::string_view finish_reason,
                       const Usage& usage, bool include_usage);

/// Deterministic unit vectors, one for each input.
std::string embeddings_answer(const Ask& ask, std::uint32_t prompt_tokens, std::uint64_t seed);

std::string models_answer(const std::vector<std::string>& models, std::int64_t created_s,
                          std::uint64_t max_model_len);

}  // namespace signalbox::engine_sim
