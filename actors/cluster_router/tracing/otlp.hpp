// Traces as the JSON form of an ExportTraceServiceRequest: what OTLP/HTTP collectors take at /v1/traces.
// https://opentelemetry.io/docs/specs/otlp/ and the semantic conventions for HTTP and for generative AI; what they have no name
// for begins with "signalbox.".
#pragma once

#include <span>
#include <string>

#include "actors/cluster_router/tracing/trace.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::tracing {

/// Whose spans they are.
struct Resource {
  std::string fleet;
  ClusterName cluster;
  ProcessName router;
};

/// A server span for each request and a client span below it for each attempt that its record keeps, the first and the last.
/// `unix_offset`: what makes the monotonic times of records Unix time.
std::string otlp_json(std::span<const EndedTrace> traces, const Resource& resource, Duration unix_offset);

}  // namespace signalbox::tracing
