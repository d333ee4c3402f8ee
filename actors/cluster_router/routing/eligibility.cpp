#include "actors/cluster_router/routing/eligibility.hpp"

#include <algorithm>

namespace signalbox::routing {

policy::DomainPath path_of(const schema::FleetTable& table, EngineIndex engine) {
  const schema::EngineRow& row = table.engines[engine.at()];
  if (row.cluster.at() >= table.clusters.size()) return {};
  const schema::ClusterRow& cluster = table.clusters[row.cluster.at()];
  return {row.rack.str(), cluster.name.str(), cluster.region.str(), cluster.zone.str()};
}

bool serves(const schema::EngineRow& engine, const ModelName& model) {
  return std::find(engine.models.begin(), engine.models.end(), model) != engine.models.end();
}

std::vector<EngineSet> allowed_by_policy(const policy::CompiledPolicy& policy,
                                         const schema::FleetTable& table) {
  std::vector<EngineSet> sets(policy.classes.size(), EngineSet(table.engines.size()));
  for (std::size_t c = 0; c < sets.size(); ++c) {
    const ModelName& model = policy.at(policy.classes[c].model).name;
    for (std::size_t e = 0; e < table.engines.size(); ++e)
      if (serves(table.engines[e], model) && policy.allows(ClassIndex(c), path_of(table, EngineIndex(e))))
        sets[c].insert(EngineIndex(e));
  }
  return sets;
}

EngineSet set_of_bits(const schema::Bytes& bits, std::size_t engines) {
  EngineSet set(engines);
  for (std::size_t e = 0; e < engines && e / 8 < bits.size(); ++e)
    if ((bits[e / 8] >> (e % 8) & 1) != 0) set.insert(EngineIndex(e));
  return set;
}

}  // namespace signalbox::routing
