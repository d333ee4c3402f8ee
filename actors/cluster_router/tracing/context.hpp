// W3C Trace Context: a client's trace goes on through this router, whose span is the parent of the engine's.
// https://www.w3.org/TR/trace-context/
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/cluster_router/http/head.hpp"
#include "actors/cluster_router/routing/verdict.hpp"

namespace signalbox::tracing {

/// A valid traceparent: lower-case hexadecimal digits of the request's head.
struct TraceParent {
  std::string_view trace;  ///< 32 digits
  std::string_view span;   ///< 16 digits
  std::string_view flags;  ///< 2 digits
  bool sampled() const;    ///< who sent it records the trace
};
/// Of a trace that begins here.
inline constexpr std::string_view sampled_flags = "01";
/// The request's, if it has one that is valid, and only one. Without it its tracestate means nothing either.
std::optional<TraceParent> traceparent_of(const http::Fields& fields);

/// Its value with this span in place of the parent's.
std::string traceparent_with(const TraceParent& parent, std::uint64_t span);

/// The span of one attempt, from 1 on; of attempt 0: of the request. Whoever knows the decision's id can tell it. Never 0.
std::uint64_t span_of(const routing::DecisionId& decision, std::uint32_t attempt);

}  // namespace signalbox::tracing
