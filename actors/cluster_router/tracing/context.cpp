#include "actors/cluster_router/tracing/context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "messages/base/rng.hpp"

namespace signalbox::tracing {
namespace {

constexpr std::size_t size = 55, trace_at = 3, trace_size = 32, parent_at = 36, parent_size = 16,
                      flags_at = 53;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_id(std::string_view text) { return is_hex(text) && text.find_first_not_of('0') != text.npos; }

/// A later version may go on after the flags, and is read as far as this one goes.
bool is_valid(std::string_view text) {
  if (text.size() < size || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const std::string_view version = text.substr(0, 2);
  if (!is_hex(version) || version == "ff") return false;
  if (text.size() > size && (version == "00" || text[size] != '-')) return false;
  return is_id(text.substr(trace_at, trace_size)) && is_id(text.substr(parent_at, parent_size)) &&
         is_hex(text.substr(flags_at, 2));
}

}  // namespace

std::uint64_t span_of(const routing::DecisionId& decision, std::uint32_t attempt) {
  const std::uint64_t span = mix64(mix64(decision.life + attempt) ^ decision.count);
  return span == 0 ? 1 : span;
}

bool TraceParent::sampled() const {
  const char c = flags[1];
  return ((c <= '9' ? c - '0' : c - 'a' + 10) & 1) != 0;
}

std::optional<TraceParent> traceparent_of(const http::Fields& fields) {
  std::string_view sent;
  for (const http::Field& field : fields)
    if (http::same_name(field.name, "traceparent")) {
      if (!sent.empty()) return std::nullopt;  // two parents are none
      sent = field.value;
    }
  if (!is_valid(sent)) return std::nullopt;
  return TraceParent{sent.substr(trace_at, trace_size), sent.substr(parent_at, parent_size),
                     sent.substr(flags_at, 2)};
}

std::string traceparent_with(const TraceParent& parent, std::uint64_t span) {
  return fmt::format("00-{}-{:016x}-{}", parent.trace, span, parent.flags);
}

}  // namespace signalbox::tracing
