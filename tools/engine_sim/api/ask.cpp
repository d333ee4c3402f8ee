#include "tools/engine_sim/api/ask.hpp"

#include <simdjson.h>

namespace signalbox::engine_sim {
namespace {

namespace json = simdjson::dom;

// An image or a sound is worth this many bytes of prompt, whatever it shows.
constexpr std::size_t media_bytes = 1024;

Status add_part(const json::element& part, std::string& out) {
  std::string_view text;
  if (part.get(text) == simdjson::SUCCESS) return out += text, Status{};
  json::object object;
  if (part.get(object) != simdjson::SUCCESS)
    return invalid("a content part is neither a string nor an object", "messages");
  if (object["text"].get(text) == simdjson::SUCCESS)
    out += text;
  else
    out.append(media_bytes, '.');
  return {};
}

Status add_content(const json::element& content, std::string& out) {
  if (content.is_null()) return {};
  json::array parts;
  if (content.get(parts) != simdjson::SUCCESS) return add_part(content, out);
  for (const json::element part : parts)
    if (const Status added = add_part(part, out); !added) return added;
  return {};
}

/// `said`: where the last message goes if it is the begin of the answer; else null.
Status add_messages(const json::element& value, std::string_view param, std::string& out,
                    std::string* said = nullptr) {
  json::array messages;
  if (value.get(messages) != simdjson::SUCCESS)
    return invalid("expected an array of messages", std::string(param));
  std::size_t left = messages.size();
  if (left == 0) return invalid("expected at least one message", std::string(param));
  for (const json::element message : messages) {
    if (--left == 0 && said != nullptr) {
      json::element content;
      if (message["content"].get(content) != simdjson::SUCCESS)
        return invalid("the last message has no content", std::string(param));
      if (const Status added = add_content(content, *said); !added) return added;
      break;
    }
    std::string_view role;
    if (message["role"].get(role) != simdjson::SUCCESS)
      return invalid("a message has no role", fmt::format("{}.role", param));
    out.append(role).push_back('\n');
    json::element content;
    if (message["content"].get(content) == simdjson::SUCCESS)
      if (const Status added = add_content(content, out); !added) return added;
    out.push_back('\n');
  }
  out += "assistant\n";
  return {};
}

// A token id stands for four bytes, as everywhere here.
Status add_tokens(const json::array& tokens, std::string& out) {
  for (const json::element token : tokens) {
    std::uint64_t id = 0;
    if (token.get(id) != simdjson::SUCCESS) return invalid("expected token ids", "prompt");
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(id >> shift));
  }
  return {};
}

/// A string, an array of strings, an array of token ids, or an array of such arrays, as texts.
Status read_texts(const json::element& value, std::string_view param, std::vector<std::string>& out) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return out.emplace_back(text), Status{};
  json::array items;
  if (value.get(items) != simdjson::SUCCESS || items.size() == 0)
    return invalid("expected a string or a non-empty array", std::string(param));
  if (items.at(0).is_uint64()) return add_tokens(items, out.emplace_back());
  for (const json::element item : items) {
    json::array tokens;
    if (item.get(text) == simdjson::SUCCESS)
      out.emplace_back(text);
    else if (item.get(tokens) != simdjson::SUCCESS)
      return invalid("expected strings or token ids", std::string(param));
    else if (const Status added = add_tokens(tokens, out.emplace_back()); !added)
      return added;
  }
  return {};
}

Status read_max_tokens(const json::object& object, Ask& ask) {
  for (const std::string_view name : {"max_tokens", "max_completion_tokens", "max_output_tokens"}) {
    json::element value;
    if (object[name].get(value) != simdjson::SUCCESS || value.is_null()) continue;
    std::uint64_t tokens = 0;
    if (value.get(tokens) != simdjson::SUCCESS || tokens == 0 || tokens > UINT32_MAX)
      return invalid("expected a positive number of tokens", std::string(name));
    ask.max_tokens = static_cast<std::uint32_t>(tokens);
  }
  return {};
}

bool flag(const json::object& object, std::string_view name) {
  bool value = false;
  return object[name].get(value) == simdjson::SUCCESS && value;
}

Status read_prompt(const json::object& object, Ask& ask) {
  const std::string_view param = ask.endpoint == Endpoint::chat         ? "messages"
                                 : ask.endpoint == Endpoint::completion ? "prompt"
                                                                        : "input";
  json::element value;
  if (object[param].get(value) != simdjson::SUCCESS || value.is_null())
    return invalid("this parameter is required", std::string(param));
  if (ask.endpoint == Endpoint::chat)
    return add_messages(value, param, ask.prompt,
                        flag(object, "continue_final_message") ? &ask.said : nullptr);
  if (ask.endpoint == Endpoint::response && value.is_array()) return add_messages(value, param, ask.prompt);
  if (const Status read = read_texts(value, param, ask.inputs); !read) return read;
  if (ask.endpoint == Endpoint::embedding) return {};
  if (ask.inputs.size() != 1)
    return invalid("one prompt in a request", std::string(param), "send several requests");
  ask.prompt = std::move(ask.inputs.front());
  ask.inputs.clear();
  if (ask.endpoint == Endpoint::response) ask.prompt = "user\n" + ask.prompt + "\nassistant\n";
  return {};
}

}  // namespace

std::optional<Endpoint> endpoint_of(std::string_view path) {
  if (path == "/v1/chat/completions") return Endpoint::chat;
  if (path == "/v1/completions") return Endpoint::completion;
  if (path == "/v1/embeddings") return Endpoint::embedding;
  if (path == "/v1/responses") return Endpoint::response;
  return std::nullopt;
}

Result<Ask> read_ask(Endpoint endpoint, std::string_view body) {
  json::parser parser;
  json::object object;
  const auto parsed = parser.parse(body.data(), body.size());
  if (parsed.get(object) != simdjson::SUCCESS) return invalid("the body is not a JSON object");

  Ask ask;
  ask.endpoint = endpoint;
  std::string_view text;
  if (object["model"].get(text) != simdjson::SUCCESS) return invalid("this parameter is required", "model");
  ask.model = text;
  if (object["cache_salt"].get(text) == simdjson::SUCCESS) ask.cache_salt = text;
  if (object["encoding_format"].get(text) == simdjson::SUCCESS) ask.base64 = text == "base64";
  std::uint64_t number = 0;
  if (object["n"].get(number) == simdjson::SUCCESS && number != 1)
    return invalid("only one choice is made", "n");
  if (object["dimensions"].get(number) == simdjson::SUCCESS) {
    if (number == 0 || number > 8192) return invalid("expected 1 to 8192", "dimensions");
    ask.dimensions = static_cast<std::uint32_t>(number);
  }
  ask.stream = flag(object, "stream") && endpoint != Endpoint::embedding;
  ask.ignore_eos = flag(object, "ignore_eos");
  json::object stream_options;
  if (object["stream_options"].get(stream_options) == simdjson::SUCCESS)
    ask.include_usage = flag(stream_options, "include_usage");
  if (const Status read = read_max_tokens(object, ask); !read) return tl::unexpected(read.error());
  if (flag(object, "continue_final_message") && flag(object, "add_generation_prompt"))
    return invalid("excludes add_generation_prompt", "continue_final_message");
  if (const Status read = read_prompt(object, ask); !read) return tl::unexpected(read.error());
  return ask;
}

}  // namespace signalbox::engine_sim
