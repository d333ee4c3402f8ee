#include "actors/global_optimizer/machine/caps.hpp"

#include <algorithm>
#include <string>

namespace signalbox::global_optimizer {

namespace {

constexpr int rounds = 32;
constexpr double tolerance = 1e-12;

/// A set of rows with one cap on their sum.
struct Group {
  std::vector<std::size_t> members;
  double cap = 1;
};

std::vector<Group> groups_of(const std::vector<Share>& row, const schema::FleetTable& table,
                             const policy::Limits& limits) {
  std::vector<Group> out;
  std::map<std::string, Group> racks, clusters;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const schema::EngineRow& engine = table.engines[row[i].engine.at()];
    if (limits.engine_weight_cap) out.push_back({{i}, *limits.engine_weight_cap});
    if (limits.rack_weight_cap) racks[engine.rack.str()].members.push_back(i);
    if (limits.cluster_weight_cap)
      clusters[table.clusters[engine.cluster.at()].name.str()].members.push_back(i);
  }
  for (auto& [name, group] : racks) out.push_back({std::move(group.members), *limits.rack_weight_cap});
  for (auto& [name, group] : clusters) out.push_back({std::move(group.members), *limits.cluster_weight_cap});
  return out;
}

double sum_of(const std::vector<Share>& row, const Group& group) {
  double sum = 0;
  for (const std::size_t i : group.members) sum += row[i].weight;
  return sum;
}

}  // namespace

void hold_caps(std::vector<Share>& row, const schema::FleetTable& table, const policy::Limits& limits) {
  const auto groups = groups_of(row, table, limits);
  if (groups.empty()) return;
  for (int round = 0; round < rounds; ++round) {
    double excess = 0;
    for (const Group& group : groups) {
      const double sum = sum_of(row, group);
      if (sum <= group.cap + tolerance) continue;
      excess += sum - group.cap;
      for (const std::size_t i : group.members) row[i].weight *= group.cap / sum;
    }
    if (excess <= tolerance) return;
    std::vector<double> room(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) room[i] = row[i].room;
    for (const Group& group : groups)
      if (sum_of(row, group) >= group.cap - tolerance)
        for (const std::size_t i : group.members) room[i] = 0;
    double total = 0;
    for (const double r : room) total += r;
    const bool none = total <= 0;
    for (std::size_t i = 0; none && i < row.size(); ++i) total += room[i] = row[i].room;
    if (total <= 0) return;
    for (std::size_t i = 0; i < row.size(); ++i) row[i].weight += excess * room[i] / total;
    if (none) return;
  }
}

}  // namespace signalbox::global_optimizer
