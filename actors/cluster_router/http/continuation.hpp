// A stream that goes on at another engine: which requests allow it, what the second engine is asked, and how its events become
// the rest of the first one's.
//
// Completions: the text so far is appended to the prompt. Chat completions: it becomes the last, unfinished message, with
// vLLM's and SGLang's `continue_final_message`; llama.cpp continues a last message of the assistant anyway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/cluster_router/http/request_shape.hpp"
#include "messages/base/result.hpp"

namespace signalbox::http {

/// A request for one stream of plain text: chat or completions, one choice, and nothing that asks for more than text (tools,
/// log probabilities, structured output) or that is not known here. Looks at every field: only for requests whose policy
/// lets them be continued.
bool can_be_continued(std::string_view body, Endpoint endpoint);

/// The request for the rest, after `text` of about `tokens` tokens. Errors: invalid, where nothing is left to be asked for.
Result<std::string> request_for_rest(std::string_view body, Endpoint endpoint, std::string_view text,
                                     std::uint64_t tokens);

/// What one event's data adds to the answer.
struct StreamPiece {
  std::string text;
  bool readable = false;  ///< nothing but text, its role or its end; else the stream cannot be continued
  bool ends = false;      ///< the answer is complete: a finish_reason, or [DONE]
};
StreamPiece read_piece(std::string_view data, Endpoint endpoint);

/// What the client was told first, of the whole answer.
struct StreamIdentity {
  std::string id;       ///< as JSON, with its quotes
  std::string created;  ///< as JSON
};
StreamIdentity identity_of(std::string_view data);

/// An event's data of the second engine as one of the first one's stream: its identity, and in the usage the tokens of the text
/// so far counted as answer and no longer as prompt. Empty: an event that only begins a stream, which the client has had.
std::string as_continued(std::string_view data, Endpoint endpoint, const StreamIdentity& first,
                         std::uint64_t tokens);

}  // namespace signalbox::http
