#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cluster-config/load/load.hpp"
#include "messages/base/nearest.hpp"

namespace signalbox::config {
namespace {

void match_models(const Config& config, const policy::CompiledPolicy& policy, std::vector<Mistake>& out) {
  std::vector<std::string_view> known;
  for (const policy::ModelRow& row : policy.models) known.push_back(row.name.str());
  for (const Engine& engine : config.engines)
    for (const ModelName& model : engine.models)
      if (!policy.find_model(model.str()))
        out.push_back(
            {engine.place,
             fmt::format("engine '{}' serves '{}', which the policy does not declare", engine.name, model),
             name_hint(model.str(), known)});
}

/// A policy that declares zones declares those of all clusters: what it does not know it cannot keep apart.
void match_zones(const Config& config, const policy::CompiledPolicy& policy, std::vector<Mistake>& out) {
  if (policy.zones.empty()) return;
  std::vector<std::string_view> known;
  for (const policy::ZoneRow& row : policy.zones) known.push_back(row.name.str());
  for (const Cluster& cluster : config.clusters) {
    const auto zone = std::ranges::find(policy.zones, cluster.zone, &policy::ZoneRow::name);
    if (zone == policy.zones.end())
      out.push_back({cluster.place,
                     fmt::format("cluster '{}' lies in zone '{}', which the policy does not declare",
                                 cluster.name, cluster.zone),
                     name_hint(cluster.zone.str(), known)});
    else if (std::ranges::find(zone->regions, cluster.region) == zone->regions.end())
      out.push_back({cluster.place,
                     fmt::format("cluster '{}' lies in region '{}', which is not in the policy's zone '{}'",
                                 cluster.name, cluster.region, cluster.zone),
                     "add it to the zone's regions in the policy"});
  }
}

bool may_serve(const Config& config, const policy::CompiledPolicy& policy, ClassIndex index,
               const Engine& engine) {
  if (!std::ranges::binary_search(engine.models, policy.at(policy.at(index).model).name)) return false;
  const Cluster* cluster = config.find_cluster(engine.cluster);
  return policy.allows(index,
                       {engine.rack.str(), cluster->name.str(), cluster->region.str(), cluster->zone.str()});
}

void match_classes(const Config& config, const policy::CompiledPolicy& policy, std::vector<Mistake>& out) {
  for (std::size_t i = 0; i < policy.classes.size(); ++i) {
    const auto serves = [&](const Engine& engine) {
      return may_serve(config, policy, ClassIndex(i), engine);
    };
    if (std::ranges::any_of(config.engines, serves)) continue;
    const policy::ClassRow& row = policy.classes[i];
    out.push_back({{1, 1},
                   fmt::format("no engine may serve class '{}' of the policy", row.name),
                   fmt::format("add an engine with model '{}'{}", policy.at(row.model).name,
                               row.any_zone ? "" : " in the zone of the class's residency")});
  }
}

}  // namespace

std::vector<Mistake> match(const Config& config, const policy::CompiledPolicy& policy) {
  std::vector<Mistake> out;
  match_models(config, policy, out);
  match_zones(config, policy, out);
  match_classes(config, policy, out);
  std::ranges::move(match_limits(config, policy), std::back_inserter(out));
  std::ranges::stable_sort(out, {}, [](const Mistake& m) { return m.place.line; });
  return out;
}

}  // namespace signalbox::config
