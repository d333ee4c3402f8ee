#include "actors/cluster_router/http/continuation.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "actors/cluster_router/http/errors.hpp"

namespace signalbox::http {
namespace {

namespace dom = simdjson::dom;

/// Fields that say how text is made, and nothing else of the answer.
constexpr std::array<std::string_view, 28> plain_fields{"model",
                                                        "messages",
                                                        "prompt",
                                                        "stream",
                                                        "stream_options",
                                                        "max_tokens",
                                                        "max_completion_tokens",
                                                        "temperature",
                                                        "top_p",
                                                        "top_k",
                                                        "min_p",
                                                        "seed",
                                                        "stop",
                                                        "n",
                                                        "frequency_penalty",
                                                        "presence_penalty",
                                                        "repetition_penalty",
                                                        "logit_bias",
                                                        "user",
                                                        "ignore_eos",
                                                        "metadata",
                                                        "store",
                                                        "priority",
                                                        "cache_salt",
                                                        "service_tier",
                                                        "safety_identifier",
                                                        "prompt_cache_key",
                                                        "request_id"};

bool is_plain(std::string_view name) { return std::ranges::find(plain_fields, name) != plain_fields.end(); }

bool plain_value(std::string_view name, const dom::element& value, Endpoint endpoint) {
  std::uint64_t number = 0;
  if (name == "n") return value.is_null() || (value.get(number) == simdjson::SUCCESS && number == 1);
  if (name == "prompt") return endpoint == Endpoint::completions && value.is_string();
  if (name == "stream_options") {
    dom::object options;
    if (value.is_null()) return true;
    if (value.get(options) != simdjson::SUCCESS) return false;
    return std::all_of(options.begin(), options.end(),
                       [](const auto& field) { return field.key == "include_usage"; });
  }
  if (name != "messages") return true;
  dom::array messages;
  if (endpoint != Endpoint::chat || value.get(messages) != simdjson::SUCCESS || messages.size() == 0)
    return false;
  std::string_view role;
  return messages.at(messages.size() - 1)["role"].get(role) == simdjson::SUCCESS && role != "assistant";
}

bool is_limit(std::string_view name) { return name == "max_tokens" || name == "max_completion_tokens"; }

/// Where a value begins, after `"key":`, in JSON that may have spaces; npos if the key is not there.
std::size_t value_after(std::string_view json, std::string_view key, std::size_t from = 0) {
  const std::string quoted = '"' + std::string(key) + '"';
  std::size_t at = json.find(quoted, from);
  if (at == std::string_view::npos) return at;
  at += quoted.size();
  while (at < json.size() && (json[at] == ' ' || json[at] == ':')) ++at;
  return at;
}

std::size_t end_of_value(std::string_view json, std::size_t at) {
  if (at < json.size() && json[at] == '"') {
    for (++at; at < json.size() && json[at] != '"'; ++at)
      if (json[at] == '\\') ++at;
    return std::min(json.size(), at + 1);
  }
  return std::min(json.size(), json.find_first_of(",}] \n", at));
}

std::string value_of(std::string_view json, std::string_view key) {
  const std::size_t at = value_after(json, key);
  return at == std::string_view::npos ? std::string()
                                      : std::string(json.substr(at, end_of_value(json, at) - at));
}

void replace_value(std::string& json, std::string_view key, std::string_view with) {
  const std::size_t at = value_after(json, key);
  if (at != std::string::npos && !with.empty()) json.replace(at, end_of_value(json, at) - at, with);
}

/// Adds to a count inside the usage object.
void shift_count(std::string& json, std::size_t from, std::string_view key, std::int64_t by) {
  const std::size_t at = value_after(json, key, from);
  if (at == std::string::npos) return;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(json.data() + at, json.data() + json.size(), count);
  if (error != std::errc()) return;
  json.replace(at, static_cast<std::size_t>(end - json.data()) - at,
               std::to_string(std::max<std::int64_t>(0, count + by)));
}

bool only_begins(const dom::element& event, Endpoint endpoint) {
  if (endpoint != Endpoint::chat) return false;
  dom::element choice, delta;
  std::string_view content, role;
  if (event["choices"].at(0).get(choice) != simdjson::SUCCESS ||
      choice["delta"].get(delta) != simdjson::SUCCESS)
    return false;
  dom::element finish;
  const bool ends = choice["finish_reason"].get(finish) == simdjson::SUCCESS && !finish.is_null();
  const bool says = delta["content"].get(content) == simdjson::SUCCESS && !content.empty();
  return !ends && !says && delta["role"].get(role) == simdjson::SUCCESS;
}

}  // namespace

bool can_be_continued(std::string_view body, Endpoint endpoint) {
  if (endpoint != Endpoint::chat && endpoint != Endpoint::completions) return false;
  dom::parser parser;
  dom::object object;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS) return false;
  bool stream = false;
  if (object["stream"].get(stream) != simdjson::SUCCESS || !stream) return false;
  return std::all_of(object.begin(), object.end(), [endpoint](const auto& field) {
    return is_plain(field.key) && plain_value(field.key, field.value, endpoint);
  });
}

Result<std::string> request_for_rest(std::string_view body, Endpoint endpoint, std::string_view text,
                                     std::uint64_t tokens) {
  dom::parser parser;
  dom::object object;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS)
    return invalid("the body is not a JSON object");
  std::string out = "{";
  for (const auto& [name, value] : object) {
    if (out.size() > 1) out += ',';
    out += json_string(name) + ':';
    std::uint64_t limit = 0;
    if (is_limit(name) && value.get(limit) == simdjson::SUCCESS) {
      if (limit <= tokens)
        return invalid("the answer has all the tokens that it may have", std::string(name));
      out += std::to_string(limit - tokens);
    } else if (name == "messages") {
      out += simdjson::minify(value);
      out.back() = ',';
      out += R"({"role":"assistant","content":)" + json_string(text) + "}]";
    } else if (name == "prompt") {
      std::string_view prompt;
      if (value.get(prompt) != simdjson::SUCCESS) return invalid("expected one text", "prompt");
      out += json_string(std::string(prompt).append(text));
    } else {
      out += simdjson::minify(value);
    }
  }
  if (endpoint == Endpoint::chat) out += R"(,"add_generation_prompt":false,"continue_final_message":true)";
  return out + '}';
}

StreamPiece read_piece(std::string_view data, Endpoint endpoint) {
  StreamPiece out;
  if (data == "[DONE]") return {{}, true, true};
  thread_local dom::parser parser;  // each token of a stream passes here: its memory is kept
  dom::element event;
  dom::array choices;
  if (parser.parse(data.data(), data.size()).get(event) != simdjson::SUCCESS ||
      event["choices"].get(choices) != simdjson::SUCCESS || choices.size() > 1)
    return out;
  out.readable = true;
  if (choices.size() == 0) return out;  // the usage
  dom::object choice;
  if (choices.at(0).get(choice) != simdjson::SUCCESS) return {};
  for (const auto& [name, value] : choice) {
    std::string_view text;
    if (value.is_null() || name == "index") continue;
    if (name == "finish_reason") {
      out.ends = true;
    } else if (name == "text" && endpoint == Endpoint::completions && value.get(text) == simdjson::SUCCESS) {
      out.text += text;
    } else if (name == "delta" && endpoint == Endpoint::chat && value.is_object()) {
      for (const auto& [part, content] : dom::object(value)) {
        if (content.is_null() || part == "role") continue;
        if (part != "content" || content.get(text) != simdjson::SUCCESS) return {};
        out.text += text;
      }
    } else {
      return {};
    }
  }
  return out;
}

StreamIdentity identity_of(std::string_view data) {
  return {value_of(data, "id"), value_of(data, "created")};
}

std::string as_continued(std::string_view data, Endpoint endpoint, const StreamIdentity& first,
                         std::uint64_t tokens) {
  std::string out(data);
  dom::parser parser;
  dom::element event;
  if (parser.parse(data.data(), data.size()).get(event) != simdjson::SUCCESS) return out;  // [DONE]
  if (only_begins(event, endpoint)) return {};
  dom::object usage;
  if (event["usage"].get(usage) == simdjson::SUCCESS) {
    const std::size_t from = value_after(out, "usage");
    const auto moved = static_cast<std::int64_t>(tokens);
    if (from != std::string::npos) {
      shift_count(out, from, "prompt_tokens", -moved);
      shift_count(out, from, "completion_tokens", moved);
    }
  }
  replace_value(out, "id", first.id);
  replace_value(out, "created", first.created);
  return out;
}

}  // namespace signalbox::http
