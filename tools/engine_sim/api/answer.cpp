#include "tools/engine_sim/api/answer.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <bit>
#include <cmath>

#include "actors/cluster_router/http/errors.hpp"
#include "messages/base/rng.hpp"
#include "tools/engine_sim/api/text.hpp"

namespace signalbox::engine_sim {
namespace {

using http::json_string;

std::string event(std::string_view data) { return fmt::format("data: {}\n\n", data); }
std::string named_event(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

std::string usage_json(const Usage& u) {
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
      u.prompt_tokens, u.completion_tokens, u.prompt_tokens + u.completion_tokens, u.cached_tokens);
}

std::string response_usage_json(const Usage& u) {
  return fmt::format(
      R"({{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{}}},"output_tokens":{},"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":{}}})",
      u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.prompt_tokens + u.completion_tokens);
}

/// {"id":..,"object":..,"created":..,"model":..,"choices":[CHOICES]EXTRA}
std::string envelope(const AnswerHead& head, std::string_view object, std::string_view choices,
                     std::string_view extra = {}) {
  return fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":{},"choices":[{}]{}}})", head.id,
                     object, head.created_s, json_string(head.model), choices, extra);
}

std::string chat_chunk(const AnswerHead& head, std::string_view delta, std::string_view finish_reason) {
  const std::string finish = finish_reason.empty() ? "null" : json_string(finish_reason);
  return event(
      envelope(head, "chat.completion.chunk",
               fmt::format(R"({{"index":0,"delta":{},"logprobs":null,"finish_reason":{}}})", delta, finish)));
}

std::string completion_choice(std::string_view text, std::string_view finish_reason) {
  return fmt::format(R"({{"index":0,"text":{},"logprobs":null,"finish_reason":{}}})", json_string(text),
                     finish_reason.empty() ? "null" : json_string(finish_reason));
}

std::string response_json(const AnswerHead& head, std::string_view status, std::string_view text,
                          std::string_view usage, std::string_view details) {
  const std::string item =
      text.empty()
          ? std::string()
          : fmt::format(
                R"({{"type":"message","id":"msg-{}","role":"assistant","status":"{}","content":[{{"type":"output_text","text":{},"annotations":[]}}]}})",
                head.id, status, json_string(text));
  return fmt::format(
      R"({{"id":"{}","object":"response","created_at":{},"status":"{}","model":{},"output":[{}],"usage":{},"incomplete_details":{},"error":null,"instructions":null,"metadata":{{}},"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0}})",
      head.id, head.created_s, status, json_string(head.model), item, usage, details);
}

std::string finished_response(const AnswerHead& head, std::string_view text, std::string_view finish_reason,
                              const Usage& usage) {
  const bool cut = finish_reason == "length";
  return response_json(head, cut ? "incomplete" : "completed", text, response_usage_json(usage),
                       cut ? R"({"reason":"max_output_tokens"})" : "null");
}

std::vector<float> unit_vector(std::string_view text, std::uint32_t dimensions, std::uint64_t seed) {
  Rng rng(hash_text(text, seed));
  std::vector<float> vector(dimensions);
  double norm = 0;
  for (float& x : vector) x = static_cast<float>(rng.normal()), norm += double{x} * x;
  for (float& x : vector) x = static_cast<float>(x / std::sqrt(norm));
  return vector;
}

std::string vector_json(const std::vector<float>& vector, bool base64) {
  if (!base64) return fmt::format("[{:.7g}]", fmt::join(vector, ","));
  static_assert(std::endian::native == std::endian::little);
  const std::size_t bytes = vector.size() * sizeof(float);
  std::string out(sodium_base64_ENCODED_LEN(bytes, sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(vector.data()), bytes,
                    sodium_base64_VARIANT_ORIGINAL);
  out.pop_back();  // sodium's terminating zero
  return '"' + out + '"';
}

}  // namespace

std::string whole_answer(const AnswerHead& head, std::string_view text, std::string_view finish_reason,
                         const Usage& usage) {
  if (head.endpoint == Endpoint::response) return finished_response(head, text, finish_reason, usage);
  const std::string extra = R"(,"usage":)" + usage_json(usage);
  if (head.endpoint == Endpoint::completion)
    return envelope(head, "text_completion", completion_choice(text, finish_reason), extra);
  return envelope(
      head, "chat.completion",
      fmt::format(
          R"({{"index":0,"message":{{"role":"assistant","content":{}}},"logprobs":null,"finish_reason":{}}})",
          json_string(text), json_string(finish_reason)),
      extra);
}

std::string stream_start(const AnswerHead& head) {
  switch (head.endpoint) {
    case Endpoint::chat: return chat_chunk(head, R"({"role":"assistant","content":""})", {});
    case Endpoint::response:
      return named_event("response.created",
                         fmt::format(R"({{"type":"response.created","response":{}}})",
                                     response_json(head, "in_progress", {}, "null", "null")));
    default: return {};
  }
}

std::string stream_text(const AnswerHead& head, std::string_view text) {
  switch (head.endpoint) {
    case Endpoint::chat: return chat_chunk(head, fmt::format(R"({{"content":{}}})", json_string(text)), {});
    case Endpoint::response:
      return named_event(
          "response.output_text.delta",
          fmt::format(
              R"({{"type":"response.output_text.delta","item_id":"msg-{}","output_index":0,"content_index":0,"delta":{}}})",
              head.id, json_string(text)));
    default: return event(envelope(head, "text_completion", completion_choice(text, {})));
  }
}

std::string stream_end(const AnswerHead& head, std::string_view whole_text, std::string_view finish_reason,
                       const Usage& usage, bool include_usage) {
  if (head.endpoint == Endpoint::response) {
    const std::string_view type = finish_reason == "length" ? "response.incomplete" : "response.completed";
    return named_event(type, fmt::format(R"({{"type":"{}","response":{}}})", type,
                                         finished_response(head, whole_text, finish_reason, usage)));
  }
  const bool chat = head.endpoint == Endpoint::chat;
  std::string out = chat ? chat_chunk(head, "{}", finish_reason)
                         : event(envelope(head, "text_completion", completion_choice({}, finish_reason)));
  if (include_usage)
    out += event(envelope(head, chat ? "chat.completion.chunk" : "text_completion", {},
                          R"(,"usage":)" + usage_json(usage)));
  return out + "data: [DONE]\n\n";
}

std::string embeddings_answer(const Ask& ask, std::uint32_t prompt_tokens, std::uint64_t seed) {
  std::string data;
  for (std::size_t i = 0; i < ask.inputs.size(); ++i)
    data += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":{}}})", i > 0 ? "," : "", i,
                        vector_json(unit_vector(ask.inputs[i], ask.dimensions, seed), ask.base64));
  return fmt::format(
      R"({{"object":"list","data":[{}],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})", data,
      json_string(ask.model), prompt_tokens, prompt_tokens);
}

std::string models_answer(const std::vector<std::string>& models, std::int64_t created_s,
                          std::uint64_t max_model_len) {
  std::string data;
  for (const std::string& model : models)
    data += fmt::format(
        R"({}{{"id":{},"object":"model","created":{},"owned_by":"signalbox","max_model_len":{}}})",
        data.empty() ? "" : ",", json_string(model), created_s, max_model_len);
  return fmt::format(R"({{"object":"list","data":[{}]}})", data);
}

}  // namespace signalbox::engine_sim
