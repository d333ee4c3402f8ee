// Invented fleets of any size, for benchmarks and tests: three hardware generations, Zipf models, regions
// with real-looking distances.
#pragma once

#include <cstdint>

#include "messages/base/rng.hpp"
#include "optimizer/model/fleet.hpp"

namespace signalbox::optimizer {

struct FleetRecipe {
  std::uint32_t clusters = 5;  ///< one source per cluster and model
  std::uint32_t engines = 50;
  std::uint32_t models = 3;
  double utilisation = 0.7;  ///< mean planned load over capacity at which the demand is set
  bool ties =
      false;  ///< engines of one region and generation are exactly alike, and no pair has a cache value
  std::uint64_t seed = 1;
};

/// A fleet of this recipe. Each engine serves one to three models; every cluster may use every engine that
/// serves the model.
FleetState synthetic_fleet(const FleetRecipe& recipe);

/// Each source's demand times a log-normal factor with this sigma.
void perturb_demand(FleetState& fleet, double sigma, Rng& rng);
/// Takes every engine with this probability out of service.
void lose_engines(FleetState& fleet, double probability, Rng& rng);

}  // namespace signalbox::optimizer
