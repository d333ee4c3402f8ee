#include "actors/cluster_router/routing/alias_table.hpp"

namespace signalbox::routing {

AliasTable::AliasTable(std::span<const Share> shares) {
  double total = 0;
  for (const Share& share : shares) total += share.weight;
  if (!(total > 0)) return;

  // Every cell holds 1/n of the mass: the engine of its row, topped up by one that has more than 1/n.
  std::vector<double> mass;
  for (const Share& share : shares) {
    if (!(share.weight > 0)) continue;
    const auto weight = static_cast<float>(share.weight / total);
    cells_.push_back({1.0, share.engine, share.engine, weight, weight});
    mass.push_back(share.weight / total);
  }
  const auto n = static_cast<double>(cells_.size());
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < mass.size(); ++i) {
    mass[i] *= n;
    (mass[i] < 1.0 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::size_t poor = small.back(), rich = large.back();
    small.pop_back();
    cells_[poor].cut = mass[poor];
    cells_[poor].other = cells_[rich].own;
    cells_[poor].other_weight = cells_[rich].own_weight;
    mass[rich] -= 1.0 - mass[poor];
    if (mass[rich] < 1.0) {
      large.pop_back();
      small.push_back(rich);
    }
  }
}

}  // namespace signalbox::routing
