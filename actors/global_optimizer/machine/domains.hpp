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
    else if (level == policy::DomainLevel::region)
      key.first = table.clusters[engine.cluster.at()].region.str();
    else
      key.first = table.clusters[engine.cluster.at()].zone.str();
    out.push_back(known.emplace(std::move(key), static_cast<std::uint32_t>(known.size())).first->second);
  }
  return out;
}

/// The levels that rows of weights are limited by.
struct Domains {
  explicit Domains(const schema::FleetTable& table) {
    for (std::size_t level = 0; level < enum_size<policy::DomainLevel>; ++level)
      of.push_back(domains_of(table, static_cast<policy::DomainLevel>(level)));
  }
  /// By EngineIndex.
  const std::vector<std::uint32_t>& at(policy::DomainLevel level) const {
    return of[static_cast<std::size_t>(level)];
  }
  const std::vector<std::uint32_t>& rack() const { return at(policy::DomainLevel::rack); }
  std::vector<std::vector<std::uint32_t>> of;  ///< by DomainLevel
};

}  // namespace signalbox::global_optimizer
