#include "optimizer/synthetic/synthetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace signalbox::optimizer {
namespace {

struct Generation {
  StepTime step;
  double kv_tokens, max_batch;
};
/// Step times in the range of the measured profiles of an 8 to 70 billion parameter model on three
/// generations of accelerators.
constexpr std::array<Generation, 3> generations{{
    {{0.007, 0.00008, 1.0e-8, 0.000018, 1.0}, 1.2e6, 512},
    {{0.011, 0.00014, 2.0e-8, 0.000040, 1.0}, 8.0e5, 384},
    {{0.016, 0.00030, 4.0e-8, 0.000090, 1.0}, 4.0e5, 256},
}};
constexpr std::uint32_t region_count = 5;

struct Place {
  std::uint32_t region;
  double x, y;  ///< seconds of round trip within a region's area
};

struct World {
  std::array<std::array<double, region_count>, region_count> rtt_s{};
  std::vector<Place> clusters, engines;
  std::vector<std::vector<std::uint32_t>> models_of_engine;
  std::vector<RequestShape> shapes;  ///< by model
};

Place random_place(Rng& rng) {
  return {static_cast<std::uint32_t>(rng.below(region_count)), rng.uniform(0.0, 0.004),
          rng.uniform(0.0, 0.004)};
}

std::uint32_t zipf(std::uint32_t n, Rng& rng) {
  double total = 0;
  for (std::uint32_t i = 0; i < n; ++i) total += 1.0 / (i + 1.0);
  double left = rng.uniform() * total;
  for (std::uint32_t i = 0; i + 1 < n; ++i)
    if ((left -= 1.0 / (i + 1.0)) < 0.0) return i;
  return n - 1;
}

World make_world(const FleetRecipe& recipe, Rng& rng) {
  World world;
  for (std::uint32_t i = 0; i < region_count; ++i)
    for (std::uint32_t j = 0; j < i; ++j) world.rtt_s[i][j] = world.rtt_s[j][i] = rng.uniform(0.03, 0.2);
  for (std::uint32_t i = 0; i < recipe.clusters; ++i) world.clusters.push_back(random_place(rng));
  for (std::uint32_t e = 0; e < recipe.engines; ++e) {
    Place place = random_place(rng);
    if (recipe.ties) place.x = place.y = 0.002;
    world.engines.push_back(place);
    std::vector<std::uint32_t> models{e < recipe.models ? e : zipf(recipe.models, rng)};
    const std::uint64_t extra = rng.below(3);
    for (std::uint64_t i = 0; i < extra; ++i) models.push_back(zipf(recipe.models, rng));
    std::sort(models.begin(), models.end());
    models.erase(std::unique(models.begin(), models.end()), models.end());
    world.models_of_engine.push_back(std::move(models));
  }
  for (std::uint32_t m = 0; m < recipe.models; ++m) {
    const double prompt = std::clamp(rng.lognormal(std::log(900.0), 0.7), 100.0, 8000.0);
    const double output = std::clamp(rng.lognormal(std::log(120.0), 0.6), 16.0, 800.0);
    world.shapes.push_back({0.6 * prompt, output, prompt + output / 2});
  }
  return world;
}

/// Demands by (cluster, model) that load the engines which serve the model with `utilisation` of an even
/// share of them.
std::vector<double> make_demands(const FleetRecipe& recipe, const FleetState& fleet, const World& world,
                                 Rng& rng) {
  std::vector<double> rate_of_model(recipe.models, 0.0);
  for (std::uint32_t e = 0; e < recipe.engines; ++e)
    for (const std::uint32_t m : world.models_of_engine[e])
      rate_of_model[m] += recipe.utilisation / (work_s(fleet.engines[e].step, world.shapes[m]) *
                                                double(world.models_of_engine[e].size()));
  std::vector<double> demands;
  std::vector<double> total(recipe.models, 0.0);
  for (std::uint32_t c = 0; c < recipe.clusters; ++c)
    for (std::uint32_t m = 0; m < recipe.models; ++m) {
      demands.push_back(rng.lognormal(0.0, 1.0));
      total[m] += demands.back();
    }
  for (std::size_t i = 0; i < demands.size(); ++i)
    demands[i] *= rate_of_model[i % recipe.models] / total[i % recipe.models];
  return demands;
}

}  // namespace

FleetState synthetic_fleet(const FleetRecipe& recipe) {
  Rng rng(recipe.seed);
  const World world = make_world(recipe, rng);
  FleetState fleet;
  for (std::uint32_t e = 0; e < recipe.engines; ++e) {
    const Generation& g = generations[rng.below(generations.size())];
    EngineState engine{g.step, g.kv_tokens, g.max_batch, 1.0};
    if (!recipe.ties) engine.step.slowness = rng.lognormal(0.0, 0.05);
    fleet.engines.push_back(engine);
  }
  const std::vector<double> demands = make_demands(recipe, fleet, world, rng);
  for (std::uint32_t c = 0; c < recipe.clusters; ++c)
    for (std::uint32_t m = 0; m < recipe.models; ++m) {
      const std::size_t s = fleet.traffic.size();
      fleet.traffic.push_back({ClusterIndex(c), ClassIndex(m), demands[s], world.shapes[m], 200.0, 0.0, 0.0});
      for (std::uint32_t e = 0; e < recipe.engines; ++e) {
        if (!std::binary_search(world.models_of_engine[e].begin(), world.models_of_engine[e].end(), m))
          continue;
        const Place& from = world.clusters[c];
        const Place& to = world.engines[e];
        const double network =
            world.rtt_s[from.region][to.region] + 0.0005 + std::abs(from.x - to.x) + std::abs(from.y - to.y);
        const double cache = !recipe.ties && rng.chance(0.1) ? rng.uniform(0.0, 0.04) : 0.0;
        fleet.routes.push_back({SourceIndex(s), EngineIndex(e), network, 0.0, cache, 0.0});
      }
    }
  fleet.limits.load_ceiling = 0.9;
  return fleet;
}

void perturb_demand(FleetState& fleet, double sigma, Rng& rng) {
  for (TrafficState& traffic : fleet.traffic)
    traffic.demand_per_s *= rng.lognormal(-0.5 * sigma * sigma, sigma);
}

void lose_engines(FleetState& fleet, double probability, Rng& rng) {
  for (EngineState& engine : fleet.engines)
    if (rng.chance(probability)) engine.availability = 0.0;
}

}  // namespace signalbox::optimizer
