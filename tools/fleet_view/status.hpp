// One row for each engine with everything that is known of it: what `top`, `inspect engines` and the console show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/base/words.hpp"
#include "messages/schema/plan.hpp"
#include "tools/fleet_view/view.hpp"

namespace signalbox::fleet_view {

/// What is absent is not known.
struct EngineStatus {
  EngineName name;
  ClusterName cluster;
  std::string models;
  std::optional<HealthState> state;
  std::string evidence;
  std::optional<double> since_s;
  std::optional<double> capacity_factor;
  std::optional<double> running, waiting, kv_usage, tpot_s, slowness, signal_age_s;
  std::optional<double> planned_load, capacity, price;  ///< engine time, s/s
  schema::Binding binding = schema::Binding::none;
  double planned_inflight = 0;
  double planned_share = 0;  ///< of all requests that the plan admits
  // Of the routers' latest reports:
  double served_rps = 0, failed_rps = 0, inflight = 0;
  std::optional<double> latency_s, first_byte_s;

  /// Planned load over capacity.
  std::optional<double> use() const {
    if (!planned_load || !capacity || *capacity <= 0) return std::nullopt;
    return *planned_load / *capacity;
  }
};

/// In the fleet table's order; empty before a table is known.
std::vector<EngineStatus> engine_statuses(const FleetView& view, Instant now);

/// The demand of one class in one cluster, from the routers' latest reports and the plan.
struct DemandStatus {
  ClusterName cluster;
  std::string request_class;
  double offered_rps = 0, admitted_rps = 0, shed_rps = 0, finished_rps = 0;
  double prompt_tokens_s = 0, cached_tokens_s = 0, output_tokens_s = 0;
  std::optional<double> admit, planned_rps;
};
std::vector<DemandStatus> demand_statuses(const FleetView& view);

/// Sums of the demand, and what is planned by whom.
struct FleetStatus {
  std::size_t engines = 0, serving = 0, gone = 0;
  double offered_rps = 0, shed_rps = 0, inflight = 0;
  std::optional<double> latency_s, first_byte_s;  ///< means over all engines
  ProcessName leader;
  std::uint64_t term = 0;
  std::optional<double> plan_age_s, gap;
  bool holding = false;
  std::size_t alerts = 0;
};
FleetStatus fleet_status(const FleetView& view, Instant now);

}  // namespace signalbox::fleet_view
