// What an answer says about the tokens it cost, and whether it was complete: read along from the bytes that pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/cluster_router/http/request_shape.hpp"
#include "actors/cluster_router/http/sse.hpp"

namespace signalbox::http {

/// The `usage` object of an answer, in OpenAI's names or the Responses and Messages APIs' (input_tokens, output_tokens).
struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;  ///< of the prompt, found in the engine's cache
  bool has_cached = false;          ///< the answer told cached_tokens
};

/// The last usage object inside this JSON text; nothing when there is none or it is null. The text may be cut off in front.
std::optional<Usage> find_usage(std::string_view json);

/// How a stream says that it is complete: by "[DONE]", or by the type of its last event (message_stop, response.completed).
enum class StreamEnd : std::uint8_t { done_marker, typed_event, unknown };
StreamEnd stream_end_of(Endpoint endpoint);

/// Watches one answer.
class AnswerWatch {
 public:
  enum class Kind : std::uint8_t { sse, json, other };
  AnswerWatch() = default;
  AnswerWatch(Kind kind, StreamEnd end) : kind_(kind), end_(end) {}

  /// The next bytes of the body.
  void read(std::string_view bytes);

  Kind kind() const { return kind_; }
  /// Events of a stream so far, about one a token.
  std::uint64_t events() const { return sse_.events(); }
  const std::optional<Usage>& usage() const { return usage_; }
  /// The body so far ends where an event may begin.
  bool at_boundary() const { return sse_.at_boundary(); }
  /// The stream said that it is complete or that it failed, or belongs to an API whose streams do not say so.
  bool said_end() const { return ended_ || end_ == StreamEnd::unknown; }
  /// The stream did say so: what may still come is no loss.
  bool complete() const { return ended_; }
  /// To be called at the end: reads the usage out of the tail of a JSON answer.
  void finish();

 private:
  void read_event(std::string_view data);

  Kind kind_ = Kind::other;
  StreamEnd end_ = StreamEnd::unknown;
  SseReader sse_;
  std::string tail_;  ///< the last bytes of a JSON answer
  std::optional<Usage> usage_;
  bool ended_ = false;
};

}  // namespace signalbox::http
