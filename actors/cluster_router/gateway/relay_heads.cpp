#include "actors/cluster_router/gateway/relay_heads.hpp"

#include "actors/cluster_router/http/line.hpp"
#include "actors/cluster_router/tracing/context.hpp"

namespace signalbox::gateway {

using http::append_line;

namespace {

constexpr std::size_t max_request_id = 128;
constexpr std::string_view own_prefix = "x-signalbox-";

bool is_own(std::string_view name) {
  return name.size() > own_prefix.size() && http::same_name(name.substr(0, own_prefix.size()), own_prefix);
}

/// What all Connection fields together name.
std::string connection_of(const http::Fields& fields) {
  std::string out;
  for (const http::Field& field : fields)
    if (http::same_name(field.name, "connection")) (out += out.empty() ? "" : ",") += field.value;
  return out;
}

/// Passed on by neither side: hop-by-hop, named by the message's Connection field, or replaced here.
bool stays(const http::Field& field, std::string_view connection) {
  if (http::is_hop_by_hop(field.name) || is_own(field.name)) return true;
  if (http::same_name(field.name, "content-length") || http::same_name(field.name, "x-request-id"))
    return true;
  return !connection.empty() && http::has_token(connection, field.name);
}

bool stays_here(const http::Field& field, bool keep_credentials) {
  switch (field.name.size()) {
    case 4: return http::same_name(field.name, "host");
    case 6: return http::same_name(field.name, "expect");
    case 7: return keep_credentials && http::same_name(field.name, "api-key");
    case 9: return keep_credentials && http::same_name(field.name, "x-api-key");
    case 10: return http::same_name(field.name, "tracestate");
    case 11: return http::same_name(field.name, "traceparent");
    case 13: return keep_credentials && http::same_name(field.name, "authorization");
    default: return false;
  }
}

/// A request's trace, if it has a valid one or one begins here, with this router's span as parent.
void append_trace(const http::Fields& fields, const Passage& passage, std::string& out) {
  const auto parent = tracing::traceparent_of(fields);
  if (!parent && !passage.new_trace.empty())
    return append_line(
        out, "traceparent",
        tracing::traceparent_with({passage.new_trace, {}, tracing::sampled_flags}, passage.span));
  if (!parent) return;
  append_line(out, "traceparent", tracing::traceparent_with(*parent, passage.span));
  for (const http::Field& field : fields)
    if (http::same_name(field.name, "tracestate")) append_line(out, field.name, field.value);
}

}  // namespace

std::string engine_request(const http::RequestHead& head, const EngineDoor& door, const Passage& passage) {
  const bool keep_credentials = passage.credentials == Credentials::of_router || door.access.authorization;
  const std::string connection = connection_of(head.fields);
  std::string out;
  out.reserve(512);
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  append_line(out, "host", door.authority);
  append_line(out, "content-length", passage.body_bytes);
  append_line(out, "x-request-id", passage.request_id);
  for (const http::Field& field : head.fields)
    if (!stays(field, connection) && !stays_here(field, keep_credentials))
      append_line(out, field.name, field.value);
  append_trace(head.fields, passage, out);
  if (door.access.authorization && !door.access.authorization->empty())
    append_line(out, "authorization", *door.access.authorization);
  out += head.minor_version == 0 ? "via: 1.0 signalbox\r\n" : "via: 1.1 signalbox\r\n";
  return out += "\r\n";
}

ClientLines client_lines(const http::Fields& fields) {
  constexpr std::string_view access_control = "access-control-";
  const std::string connection = connection_of(fields);
  ClientLines out;
  out.text.reserve(512);
  for (const http::Field& field : fields) {
    if (stays(field, connection)) continue;
    if (http::same_name(field.name.substr(0, access_control.size()), access_control)) continue;
    out.dated = out.dated || http::same_name(field.name, "date");
    append_line(out.text, field.name, field.value);
  }
  return out;
}

std::string request_id_of(const http::Fields& fields, std::string_view otherwise) {
  const std::string_view asked = http::find(fields, "x-request-id").value_or("");
  return std::string(asked.empty() || asked.size() > max_request_id ? otherwise : asked);
}

}  // namespace signalbox::gateway
