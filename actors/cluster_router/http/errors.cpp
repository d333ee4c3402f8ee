#include "actors/cluster_router/http/errors.hpp"

#include <fmt/format.h>
#include <simdjson.h>

namespace signalbox::http {
namespace {

std::string quoted_or_null(std::string_view text) { return text.empty() ? "null" : json_string(text); }

std::string error_json(std::string_view type, std::string_view code, std::string_view message,
                       std::string_view param) {
  return fmt::format(R"({{"error":{{"message":{},"type":{},"param":{},"code":{}}}}})", json_string(message),
                     json_string(type), quoted_or_null(param), quoted_or_null(code));
}

std::string_view text_at(simdjson::dom::element parent, std::string_view key) {
  std::string_view text;
  return parent[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// The object that describes the error: {"error":{..}}, or the root itself when it speaks directly.
simdjson::dom::element error_object(simdjson::dom::element root) {
  simdjson::dom::element inner;
  return root["error"].get(inner) == simdjson::SUCCESS && inner.is_object() ? inner : root;
}

std::string message_of(simdjson::dom::element root, simdjson::dom::element error) {
  for (const std::string_view text :
       {text_at(error, "message"), text_at(root, "detail"), text_at(root, "error")})
    if (!text.empty()) return std::string(text);
  simdjson::dom::element detail;
  return root["detail"].get(detail) == simdjson::SUCCESS ? simdjson::minify(detail) : std::string();
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    case 503: return "service_unavailable_error";
    case 504: return "timeout_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string openai_error(int status, std::string_view code, std::string_view message,
                         std::string_view param) {
  return error_json(error_type(status), code, message, param);
}

std::string openai_error_event(int status, std::string_view code, std::string_view message) {
  return fmt::format("data: {}\n\n", openai_error(status, code, message));
}

std::string normalise_error(int status, std::string_view body) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(body.data(), body.size()).get(root) != simdjson::SUCCESS || !root.is_object())
    return openai_error(status, {}, fmt::format("the engine answered {} {}", status, reason_phrase(status)));
  const simdjson::dom::element error = error_object(root);
  std::string message = message_of(root, error);
  if (message.empty()) message = fmt::format("the engine answered {} {}", status, reason_phrase(status));
  const std::string_view type = text_at(error, "type");
  return error_json(type.empty() ? error_type(status) : type, text_at(error, "code"), message,
                    text_at(error, "param"));
}

}  // namespace signalbox::http
