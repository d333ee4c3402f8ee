#include "actors/cluster_router/gateway/answer_start.hpp"

#include <fmt/format.h>

#include <charconv>

#include "actors/cluster_router/gateway/relay_heads.hpp"

namespace signalbox::gateway {
namespace {

/// Retry-After in whole seconds; dates are not understood and count as silence.
Duration retry_after_of(const http::Fields& fields) {
  const std::string_view text = http::find(fields, "retry-after").value_or("");
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc() && end == text.data() + text.size() ? std::chrono::seconds(seconds)
                                                                  : Duration::zero();
}

http::AnswerWatch watch_for(const http::Fields& fields, http::Endpoint endpoint) {
  using Kind = http::AnswerWatch::Kind;
  const std::string_view type = http::find(fields, "content-type").value_or("");
  if (http::find(fields, "content-encoding")) return {Kind::other, http::StreamEnd::unknown};
  if (http::same_name(type.substr(0, 17), "text/event-stream"))
    return {Kind::sse, http::stream_end_of(endpoint)};
  return {http::same_name(type.substr(0, 16), "application/json") ? Kind::json : Kind::other,
          http::StreamEnd::unknown};
}

}  // namespace

AnswerStart answer_start(const http::ResponseHead& head, http::Endpoint endpoint) {
  AnswerStart out;
  out.status = static_cast<std::uint16_t>(head.status);
  out.retry_after = retry_after_of(head.fields);
  if (out.status >= 400) {
    // An error is told in the client's framing, with a body of its own.
    if (out.retry_after > Duration::zero())
      out.lines = fmt::format("retry-after: {}\r\n",
                              std::chrono::duration_cast<std::chrono::seconds>(out.retry_after).count());
    return out;
  }
  ClientLines lines = client_lines(head.fields);
  out.lines = std::move(lines.text);
  out.dated = lines.dated;
  out.has_length = head.framing == http::Framing::length || head.framing == http::Framing::none;
  out.length = head.length;
  out.watch = watch_for(head.fields, endpoint);
  return out;
}

}  // namespace signalbox::gateway
