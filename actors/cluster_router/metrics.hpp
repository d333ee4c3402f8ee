// The router's part of /metrics, in Prometheus' text form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/cluster_router/gateway/gateway.hpp"
#include "actors/cluster_router/tracing/outbox.hpp"

namespace signalbox::cluster_router {

/// What is known of the engines together; averages are over those that say.
struct PoolFacts {
  std::uint64_t ready = 0;
  double mean_waiting = 0, mean_kv_used = 0;  ///< requests; share of the KV memory
  bool waiting_known = false, kv_known = false;
};

/// A copy of one event loop's numbers, or of several summed up.
struct Readout {
  gateway::GatewayCounters counters;
  net::ServerCounters server;
  std::uint64_t connections = 0, open = 0, queued = 0;
  std::vector<std::uint64_t> loop_connections;  ///< by event loop
  std::vector<gateway::Meter> meters;
  PoolFacts pool;
};
/// Of the ring file of decisions.
struct FilingCounts {
  std::uint64_t filed = 0, lost = 0;
};
Readout read_out(const gateway::Gateway& gateway);
/// Of all loops; `each` is not empty.
Readout summed(const std::vector<Readout>& each);

/// Own names begin with signalbox_router_. Requests and tokens are told under the names of OpenTelemetry's conventions for
/// generative AI (dots become underscores) and, with the engines, under those of the Gateway API inference extension.
std::string metrics_text(const Readout& readout, const std::string& fleet, std::uint64_t late_batches,
                         const FilingCounts& filing);
/// Of a router that makes traces. `lost`: on their way to the exporter.
std::string trace_metrics_text(const tracing::OutboxCounters& counters, std::uint64_t lost);

}  // namespace signalbox::cluster_router
