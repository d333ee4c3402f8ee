// Who may serve a class: by policy and model (allowed), and of these who may get new requests now (eligible).
#pragma once

#include <vector>

#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::routing {

/// Where an engine stands, by the fleet table. The views point into the table.
policy::DomainPath path_of(const schema::FleetTable& table, EngineIndex engine);
bool serves(const schema::EngineRow& engine, const ModelName& model);
/// By class: the engines that serve its model and that the policy lets it use.
std::vector<EngineSet> allowed_by_policy(const policy::CompiledPolicy& policy,
                                         const schema::FleetTable& table);
/// A bit an engine, least significant first; bits past the fleet are dropped.
EngineSet set_of_bits(const schema::Bytes& bits, std::size_t engines);

/// May an engine in this state get new requests? Under panic suspicion is ignored; gone and draining never are.
constexpr bool takes_new(HealthState state, double capacity_factor, bool panic) {
  switch (state) {
    case HealthState::ready:
    case HealthState::degraded:
    case HealthState::starting: return panic || capacity_factor > 0;
    case HealthState::suspect: return panic;
    case HealthState::gone:
    case HealthState::draining: return false;
  }
  return false;
}

}  // namespace signalbox::routing
