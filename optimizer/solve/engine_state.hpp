// The engines' loads during the primal sweeps, and what an engine charges for more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// Marginal cost of an engine in the sweeps: G'(y) below the ceiling. At the ceiling it jumps to
/// `rent_price`, the price that the dual asks for the last unit, and rises steeply from there: a row that
/// pays more may overfill the engine a little, so that another row which pays less gives way. With a hard
/// ceiling no two rows could ever trade places on a full engine. Repair removes what remains above.
class EngineStates {
 public:
  explicit EngineStates(const Problem& problem)
      : load(problem.engines.size(), 0.0), rows_(problem.engines.size()) {
    for (std::size_t e = 0; e < rows_.size(); ++e) {
      const CongestionCurve& curve = problem.engines[e].curve;
      const double full = curve.marginal(curve.ceiling);
      rows_[e] = {curve.q,
                  curve.capacity,
                  1.0 / curve.capacity,
                  curve.ceiling,
                  full,
                  full,
                  steepness * curve.curvature(curve.ceiling)};
    }
  }

  bool usable(std::size_t e) const { return rows_[e].ceiling > 0.0; }
  std::size_t size() const { return rows_.size(); }

  double marginal(std::size_t e, double y) const {
    const Row& row = rows_[e];
    if (y >= row.ceiling) return row.rent_price + (y - row.ceiling) * row.steep;
    const double inverse = 1.0 / (1.0 - y * row.inverse_capacity);
    return row.q * inverse * inverse;
  }
  /// The load at which one more unit costs `price`; `softness` gets its derivative by the price.
  double load_at(std::size_t e, double price, double& softness) const {
    const Row& row = rows_[e];
    softness = 0.0;
    if (price <= row.q) return 0.0;
    if (price < row.full_price) {
      const double root = std::sqrt(row.q / price);
      softness = 0.5 * row.capacity * root / price;
      return row.capacity * (1.0 - root);
    }
    if (price <= row.rent_price) return row.ceiling;
    softness = 1.0 / row.steep;
    return row.ceiling + (price - row.rent_price) * softness;
  }

  /// Sets the rent of each ceiling from these prices.
  void set_rents(const std::vector<double>& price) {
    for (std::size_t e = 0; e < rows_.size(); ++e)
      rows_[e].rent_price = std::max(rows_[e].full_price, price[e]);
  }

  std::vector<double> load;  ///< work seconds per second

 private:
  static constexpr double steepness = 8.0;
  struct Row {
    double q, capacity, inverse_capacity, ceiling, full_price, rent_price, steep;
  };
  std::vector<Row> rows_;
};

}  // namespace signalbox::optimizer
