// W3C Trace Context: a client's trace goes on through this router, whose span is the parent of the engine's.
// https://www.w3.org/TR/trace-context/
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/cluster_router/http/head.hpp"
#include "actors/cluster_router/routing/verdict.hpp"

namespace signalbox::gateway {

/// The span of one attempt: whoever knows the decision's id can tell it. Never 0.
std::uint64_t span_of(const routing::DecisionId& decision, std::uint32_t attempt);

/// The request's traceparent with this span in place of its parent's; empty if it has none, or none that is valid. Then its
/// tracestate means nothing either.
std::string traceparent_with(const http::Fields& fields, std::uint64_t span);

}  // namespace signalbox::gateway
