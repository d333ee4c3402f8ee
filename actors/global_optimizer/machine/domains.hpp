// Which engines fail together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/kit/fleet/table.hpp"

namespace signalbox::global_optimizer {

/// A number for each engine's domain at this level, from 0, by EngineIndex. A rack lies in one cluster; an engine without one is
/// a rack of its own.
inline std::vector<std::uint32_t> domains_of(const schema::FleetTable& table, policy::DomainLevel level) {
  std::map<std::pair<std::string, std::size_t>, std::uint32_t> known;
  std::vector<std::uint32_t> out;
  for (std::size_t e = 0; e < table.engines.size(); ++e) {
    const schema::EngineRow& engine = table.engines[e];
    std::pair<std::string, std::size_t> key;
    if (level == policy::DomainLevel::rack)
      key = {engine.rack.str(), engine.rack.empty() ? e + 1 : 0};
    else if (level == policy::DomainLevel::cluster)
      key.first = table.clusters[engine.cluster.at()].name.str();
    else
      key.first = table.clusters[engine.cluster.at()].region.str();
    out.push_back(known.emplace(std::move(key), static_cast<std::uint32_t>(known.size())).first->second);
  }
  return out;
}

/// The levels that rows of weights are limited by.
struct Domains {
  explicit Domains(const schema::FleetTable& table)
      : rack(domains_of(table, policy::DomainLevel::rack)),
        cluster(domains_of(table, policy::DomainLevel::cluster)) {}
  std::vector<std::uint32_t> rack, cluster;  ///< by EngineIndex
};

}  // namespace signalbox::global_optimizer
