#include "actors/cluster_router/http/request_shape.hpp"

#include <simdjson.h>

namespace signalbox::http {
namespace {

namespace ondemand = simdjson::ondemand;

struct Path {
  std::string_view path;
  Endpoint endpoint;
  std::string_view name;
};
constexpr Path paths[] = {
    {"/v1/chat/completions", Endpoint::chat, "chat"},
    {"/v1/completions", Endpoint::completions, "completions"},
    {"/v1/embeddings", Endpoint::embeddings, "embeddings"},
    {"/v1/responses", Endpoint::responses, "responses"},
    {"/v1/rerank", Endpoint::rerank, "rerank"},
    {"/v1/messages", Endpoint::messages, "messages"},
};

enum class Key : std::uint8_t {
  other,
  model,
  stream,
  stream_options,
  max_new_tokens,
  n,
  prompt,
  keeps_state,
  previous
};

Key key_of(std::string_view name) {
  if (name == "model") return Key::model;
  if (name == "messages" || name == "prompt" || name == "input" || name == "query" || name == "documents")
    return Key::prompt;
  if (name == "stream") return Key::stream;
  if (name == "stream_options") return Key::stream_options;
  if (name == "max_tokens" || name == "max_completion_tokens" || name == "max_output_tokens")
    return Key::max_new_tokens;
  if (name == "n") return Key::n;
  if (name == "store" || name == "background") return Key::keeps_state;
  if (name == "previous_response_id" || name == "conversation") return Key::previous;
  return Key::other;
}

tl::unexpected<Error> bad_json(simdjson::error_code error) {
  return invalid(fmt::format("the body is not valid JSON: {}", simdjson::error_message(error)), {},
                 "send a JSON object");
}

/// The raw bytes of any value.
simdjson::error_code raw(ondemand::value& value, std::string_view& out) {
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return error;
  if (type == ondemand::json_type::array) {
    ondemand::array array;
    if (const auto error = value.get_array().get(array)) return error;
    return array.raw_json().get(out);
  }
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    return object.raw_json().get(out);
  }
  out = value.raw_json_token();
  return simdjson::SUCCESS;
}

bool is_true(ondemand::value& value) {
  bool flag = false;
  return value.get_bool().get(flag) == simdjson::SUCCESS && flag;
}

Status read_model(ondemand::value& value, RequestShape& shape) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) return invalid("must be a string", "model");
  if (!shape.model.empty()) return invalid("is given twice", "model");
  auto model = ModelName::parse(text);
  if (!model) return tl::unexpected(std::move(model.error()).within("model"));
  shape.model = std::move(*model);
  return {};
}

Status read_stream_options(ondemand::value& value, RequestShape& shape) {
  ondemand::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS || type != ondemand::json_type::object) return {};
  ondemand::value flag;
  if (value["include_usage"].get(flag) == simdjson::SUCCESS) shape.wants_usage = is_true(flag);
  return {};
}

Status read_count(ondemand::value& value, std::string_view name, std::optional<std::uint64_t>& out) {
  ondemand::json_type type;
  if (value.type().get(type) == simdjson::SUCCESS && type == ondemand::json_type::null) return {};
  std::uint64_t count = 0;
  if (value.get_uint64().get(count) != simdjson::SUCCESS)
    return invalid("must be a whole number, not negative", std::string(name));
  out = count;
  return {};
}

Status read_field(std::string_view name, ondemand::value& value, Endpoint endpoint, RequestShape& shape) {
  std::optional<std::uint64_t> count;
  switch (key_of(name)) {
    case Key::model: return read_model(value, shape);
    case Key::stream: shape.stream = is_true(value); return {};
    case Key::stream_options: return read_stream_options(value, shape);
    case Key::max_new_tokens: return read_count(value, name, shape.max_new_tokens);
    case Key::n:
      if (auto status = read_count(value, name, count); !status) return status;
      shape.choices = count.value_or(1);
      return {};
    case Key::keeps_state:
      // Chat completions with `store` are kept for evaluation only; no later request depends on them.
      if (is_true(value) && endpoint != Endpoint::chat) shape.stateful = true;
      return {};
    case Key::previous: {
      std::string_view id;
      if (value.get_string().get(id) == simdjson::SUCCESS)
        shape.stateful = true, shape.previous_response = id;
      return {};
    }
    case Key::prompt: {
      std::string_view text;
      if (const auto error = raw(value, text)) return bad_json(error);
      if (text.size() > shape.prompt.size()) shape.prompt = text;
      return {};
    }
    case Key::other: return {};
  }
  return {};
}

}  // namespace

struct ShapeReader::Parser {
  ondemand::parser parser;
};

ShapeReader::ShapeReader() : parser_(std::make_unique<Parser>()) {}
ShapeReader::~ShapeReader() = default;

Endpoint endpoint_of(std::string_view path) {
  for (const Path& known : paths)
    if (path == known.path) return known.endpoint;
  return Endpoint::other;
}

std::string_view to_string(Endpoint endpoint) {
  for (const Path& known : paths)
    if (endpoint == known.endpoint) return known.name;
  return "other";
}

std::string_view gen_ai_operation(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::chat:
    case Endpoint::messages:
    case Endpoint::responses: return "chat";
    case Endpoint::completions: return "text_completion";
    default: return to_string(endpoint);
  }
}

Result<RequestShape> ShapeReader::read(std::string_view body, Endpoint endpoint) {
  ondemand::document document;
  if (const auto error =
          parser_->parser.iterate(body.data(), body.size(), body.size() + simdjson::SIMDJSON_PADDING)
              .get(document))
    return bad_json(error);
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return bad_json(error);
  RequestShape shape;
  for (auto field : object) {
    std::string_view name;
    if (const auto error = field.unescaped_key().get(name)) return bad_json(error);
    ondemand::value value;
    if (const auto error = field.value().get(value)) return bad_json(error);
    if (auto status = read_field(name, value, endpoint, shape); !status)
      return tl::unexpected(status.error());
  }
  if (const char* more = nullptr; document.current_location().get(more) == simdjson::SUCCESS)
    return invalid("the body has more after its JSON object", {}, "send one JSON object");
  if (shape.model.empty()) return invalid("you must provide a model parameter", "model");
  return shape;
}

}  // namespace signalbox::http
