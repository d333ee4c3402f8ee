// What the router needs to know of an OpenAI-shaped request, read from its JSON without building a document.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "messages/base/ids.hpp"
#include "messages/base/result.hpp"

namespace signalbox::http {

/// What a request asks of an engine, by its path.
enum class Endpoint : std::uint8_t { chat, completions, embeddings, responses, rerank, messages, other };
Endpoint endpoint_of(std::string_view path);
std::string_view to_string(Endpoint endpoint);
/// As gen_ai.operation.name has it; OpenTelemetry's conventions have names of their own for what they know.
std::string_view gen_ai_operation(Endpoint endpoint);

struct RequestShape {
  ModelName model;
  bool stream = false;
  bool wants_usage = false;  ///< stream_options.include_usage
  bool stateful = false;     ///< store, background, previous_response_id, conversation: lives on one engine
  std::string_view previous_response;           ///< previous_response_id, as in the JSON
  std::optional<std::uint64_t> max_new_tokens;  ///< max_tokens or one of its other names
  std::uint64_t choices = 1;                    ///< n
  std::string_view prompt;  ///< the raw JSON of messages, prompt, input or query: bytes of the body
};

/// Reads shapes; one per thread, because it reuses its memory.
class ShapeReader {
 public:
  ShapeReader();
  ~ShapeReader();

  /// `body` must be followed by 64 readable bytes. Errors: invalid, with the faulty field in `where` (empty: the JSON itself).
  Result<RequestShape> read(std::string_view body, Endpoint endpoint);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// A rough count of the tokens of a prompt of this many bytes of JSON.
constexpr std::uint64_t estimate_tokens(std::uint64_t bytes) { return (bytes + 3) / 4; }

}  // namespace signalbox::http
