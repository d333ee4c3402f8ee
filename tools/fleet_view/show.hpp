// The fleet's state as tables. Every row tells the age of what it rests on.
#pragma once

#include <vector>

#include "tools/fleet_view/table.hpp"
#include "tools/fleet_view/view.hpp"

namespace signalbox::fleet_view {

/// Engines with verdict, load and planned share, in the fleet table's order.
std::vector<Table> show_engines(const FleetView& view, Instant now);
/// Versions, admit fractions and weights of every cluster's snapshot, or of one.
std::vector<Table> show_snapshots(const FleetView& view, Instant now, const ClusterName& only = {});
/// Their versions and certificates alone.
Table show_snapshot_terms(const FleetView& view, Instant now, const ClusterName& only = {});
/// Optimizers: who leads, in which term, how fresh its plan is.
std::vector<Table> show_leader(const FleetView& view, Instant now);
/// Routers: what they serve by and what they are asked for.
std::vector<Table> show_routers(const FleetView& view, Instant now);
/// The weights; of one engine or cluster also why: prices, slack, what binds, what the engines that are not used would need, the
/// plan's cost by parts, and what changed since the last plan and why.
std::vector<Table> show_weights(const FleetView& view, Instant now, const EngineName& engine,
                                const ClusterName& only = {});
/// Of these, what concerns one class in one cluster: its weights, the prices of the engines in question, what was not used, limits.
std::vector<Table> show_reasons(const FleetView& view, const ClusterName& cluster,
                                const std::string& class_name);
/// The policy in force and its classes.
std::vector<Table> show_policy(const FleetView& view, Instant now);
/// Every process that beats.
std::vector<Table> show_processes(const FleetView& view, Instant now);
/// What is asked for, by cluster and class, and what the plan admits of it.
std::vector<Table> show_demand(const FleetView& view, Instant now);
/// KV memory and prefix caches of the engines.
std::vector<Table> show_cache(const FleetView& view, Instant now);
/// What plans expected and what came, by class and engine, and by engine.
std::vector<Table> show_calibration(const FleetView& view, Instant now);
/// Every monitor's word on every engine, with its evidence.
std::vector<Table> show_health(const FleetView& view, Instant now);
std::vector<Table> show_alerts(const FleetView& view, Instant now);

}  // namespace signalbox::fleet_view
