// Draws from a fixed discrete distribution in constant time (Walker 1977, in Vose's linear set-up of 1991).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "messages/base/ids.hpp"
#include "messages/base/rng.hpp"

namespace signalbox::routing {

/// An engine with its share of a distribution.
struct Share {
  EngineIndex engine;
  double weight = 0;
};

class AliasTable {
 public:
  AliasTable() = default;
  /// Weights are finite and >= 0 and need not sum to 1; rows of weight 0 are never drawn. None positive: empty.
  explicit AliasTable(std::span<const Share> shares);

  bool empty() const { return cells_.empty(); }
  std::size_t size() const { return cells_.size(); }
  /// One engine with its normalised weight; two values of `rng`. The table is not empty.
  Share draw(Rng& rng) const {
    const Cell& cell = cells_[rng.below(cells_.size())];
    return rng.uniform() < cell.cut ? Share{cell.own, cell.own_weight} : Share{cell.other, cell.other_weight};
  }

 private:
  struct Cell {
    double cut = 1;  ///< probability of `own`, given this cell
    EngineIndex own;
    EngineIndex other;
    float own_weight = 0;
    float other_weight = 0;
  };
  std::vector<Cell> cells_;
};

}  // namespace signalbox::routing
