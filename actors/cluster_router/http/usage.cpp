#include "actors/cluster_router/http/usage.hpp"

#include <algorithm>
#include <charconv>

namespace signalbox::http {
namespace {

constexpr std::size_t tail_bytes = 4096;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// What follows `"key":` at its first or last occurrence, without leading space. Searches forward for the last one too: a search by
/// single bytes is far faster than the library's backward search.
std::optional<std::string_view> after_key(std::string_view json, std::string_view key, bool last) {
  std::optional<std::string_view> found;
  for (std::size_t at = json.find(key); at != std::string_view::npos; at = json.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if (at == 0 || json[at - 1] != '"' || end >= json.size() || json[end] != '"') continue;
    std::string_view rest = json.substr(end + 1);
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    if (rest.empty() || rest.front() != ':') continue;
    rest.remove_prefix(1);
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    found = rest;
    if (!last) break;
  }
  return found;
}

bool read_count(std::string_view object, std::string_view key, std::uint64_t& out) {
  const auto text = after_key(object, key, false);
  return text && std::from_chars(text->data(), text->data() + text->size(), out).ec == std::errc();
}

/// The object that `text` begins with, through its closing brace. Usage objects hold no strings with braces.
std::string_view balanced(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return text.substr(0, i + 1);
  }
  return {};
}

bool is_last_type(std::string_view data) {
  for (const std::string_view type :
       {"message_stop", "response.completed", "response.incomplete", "response.failed", "error"})
    if (data.find(std::string("\"type\":\"").append(type).append("\"")) != std::string_view::npos ||
        data.find(std::string("\"type\": \"").append(type).append("\"")) != std::string_view::npos)
      return true;
  return false;
}

}  // namespace

StreamEnd stream_end_of(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::chat:
    case Endpoint::completions: return StreamEnd::done_marker;
    case Endpoint::responses:
    case Endpoint::messages: return StreamEnd::typed_event;
    case Endpoint::embeddings:
    case Endpoint::rerank:
    case Endpoint::other: break;
  }
  return StreamEnd::unknown;
}

std::optional<Usage> find_usage(std::string_view json) {
  const auto text = after_key(json, "usage", true);
  if (!text || text->empty() || text->front() != '{') return std::nullopt;
  const std::string_view object = balanced(*text);
  Usage out;
  const bool prompt = read_count(object, "prompt_tokens", out.prompt_tokens) ||
                      read_count(object, "input_tokens", out.prompt_tokens);
  const bool completion = read_count(object, "completion_tokens", out.completion_tokens) ||
                          read_count(object, "output_tokens", out.completion_tokens);
  out.has_cached = read_count(object, "cached_tokens", out.cached_tokens) ||
                   read_count(object, "cache_read_input_tokens", out.cached_tokens);
  if (!prompt && !completion) return std::nullopt;
  return out;
}

void AnswerWatch::read(std::string_view bytes) {
  if (kind_ == Kind::sse) return sse_.read(bytes, [this](std::string_view data) { read_event(data); });
  if (kind_ != Kind::json) return;
  if (bytes.size() >= tail_bytes) return void(tail_ = bytes.substr(bytes.size() - tail_bytes));
  if (tail_.size() + bytes.size() > 2 * tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
  tail_.append(bytes);
}

void AnswerWatch::read_event(std::string_view data) {
  if (data == "[DONE]" || data.substr(0, 9) == "{\"error\":") return void(ended_ = true);
  // Most events end here: 'u' is rarer in JSON than '"', so the search starts with it.
  if (data.find("usage\"") != std::string_view::npos)
    if (const auto usage = find_usage(data)) usage_ = usage;
  if (end_ == StreamEnd::typed_event) ended_ = ended_ || is_last_type(data);
}

void AnswerWatch::finish() {
  if (kind_ == Kind::json) usage_ = find_usage(tail_);
  tail_ = {};
}

}  // namespace signalbox::http
