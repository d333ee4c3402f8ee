// The fleet table: made from the configuration, recognised by its content, and asked who may serve what.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cluster-config/policy/compiled.hpp"
#include "cluster-config/schema/topology.hpp"
#include "messages/schema/fleet_table.hpp"

namespace signalbox::kit {

using TablePtr = std::shared_ptr<const schema::FleetTable>;
using PolicyPtr = std::shared_ptr<const policy::CompiledPolicy>;

/// The table that this configuration declares, in the configuration's order. Curves are as declared, over capacity_scale.
schema::FleetTable fleet_table(const config::Config& config);

/// Hash of the rows; `content` itself, the fleet's name and the epoch are not part of it.
Digest content_of(const schema::FleetTable& table);

/// Rows within range, names unique, and `content` as it should be: what a receiver may rely on.
Status check_table(const schema::FleetTable& table);

std::optional<EngineIndex> find_engine(const schema::FleetTable& table, const EngineName& name);
std::optional<ClusterIndex> find_cluster(const schema::FleetTable& table, const ClusterName& name);

/// Why an engine may not serve a class, or that it may.
enum class Fit : std::uint8_t { fits, wrong_model, not_allowed };
Fit fit_of(const schema::FleetTable& table, const policy::CompiledPolicy& policy, ClassIndex c,
           EngineIndex e);

/// Engines that may serve the class, ascending.
std::vector<EngineIndex> allowed_engines(const schema::FleetTable& table,
                                         const policy::CompiledPolicy& policy, ClassIndex c);
/// The same as a snapshot carries it: a bit an engine, least significant first.
schema::Bytes as_bitmap(const std::vector<EngineIndex>& engines, std::size_t fleet_size);

/// Declared round trips from one cluster to all, by ClusterIndex; 0 to itself, `absent` where nothing is declared.
std::vector<double> round_trips_s(const schema::FleetTable& table, ClusterIndex from, double absent);

}  // namespace signalbox::kit
