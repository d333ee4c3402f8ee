#include "tools/solver/bench.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "optimizer/model/fleet.hpp"
#include "optimizer/solve/solve.hpp"
#include "optimizer/synthetic/synthetic.hpp"

namespace signalbox::optimizer {
namespace {

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * double(t.tv_sec) + 1e-6 * double(t.tv_nsec);
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024.0;
}

/// A solve and where it left off, so that the next one starts from it.
class Bench {
 public:
  Bench(std::string size, FleetRecipe recipe, const BenchOptions& options)
      : size_(std::move(size)), recipe_(recipe), options_(options) {}

  bool solve_next(const FleetState& fleet, std::string_view step, bool warm) {
    auto built = build_problem(fleet);
    if (!built) return std::fprintf(stderr, "%s\n", built.error().text().c_str()), false;
    built->problem.reference_per_s.clear();
    WarmState state;
    if (warm)
      state = {plan_.price, carried_flows(problem_, plan_, built->problem),
               carried_shed(problem_, plan_, built->problem)};
    SolveOptions options;
    options.target_gap = options_.target_gap;
    const double start = cpu_ms();
    auto plan = solve(built->problem, options, state);
    const double took = cpu_ms() - start;
    if (!plan) return std::fprintf(stderr, "%s\n", plan.error().text().c_str()), false;
    problem_ = std::move(built->problem);
    plan_ = std::move(*plan);
    print(step, took);
    return true;
  }

 private:
  void print(std::string_view step, double took) const {
    double demand = 0, shed = 0, fullest = 0;
    for (std::size_t s = 0; s < problem_.sources.size(); ++s)
      demand += problem_.sources[s].demand_per_s, shed += plan_.shed_per_s[s];
    for (std::size_t e = 0; e < problem_.engines.size(); ++e)
      fullest = std::max(fullest, plan_.load[e] / problem_.engines[e].curve.capacity);
    fmt::print(
        "{{\"size\":\"{}\",\"utilisation\":{},\"ties\":{},\"step\":\"{}\",\"pairs\":{},\"cpu_ms\":{:.2f},"
        "\"gap\":{:.3e},\"objective\":{:.9g},"
        "\"bound\":{:.9g},\"shed_fraction\":{:.5f},\"fullest\":{:.4f},\"sweeps\":{},\"dual_iterations\":{},"
        "\"stop\":\"{}\",\"peak_mb\":{:.1f}}}\n",
        size_, recipe_.utilisation, recipe_.ties, step, problem_.pairs.size(), took,
        plan_.certificate.relative_gap, plan_.certificate.objective, plan_.certificate.lower_bound,
        demand > 0 ? shed / demand : 0.0, fullest, plan_.sweeps, plan_.dual_iterations, to_string(plan_.stop),
        peak_megabytes());
    std::fflush(stdout);
  }

  std::string size_;
  FleetRecipe recipe_;
  const BenchOptions& options_;
  Problem problem_;
  Plan plan_;
};

bool bench_instance(const std::string& size, const FleetRecipe& recipe, const BenchOptions& options) {
  Bench bench(size, recipe, options);
  const FleetState base = synthetic_fleet(recipe);
  Rng rng(recipe.seed + 1000);
  FleetState fleet = base;
  if (!bench.solve_next(fleet, "cold", false)) return false;
  for (unsigned i = 0; i < options.repetitions; ++i) {
    fleet = base;
    perturb_demand(fleet, 0.02, rng);
    if (!bench.solve_next(fleet, "warm_noise_2%", true)) return false;
  }
  FleetState shocked = fleet;
  for (auto& traffic : shocked.traffic)
    if (traffic.cluster == ClusterIndex(0)) traffic.demand_per_s *= 1.3;
  if (!bench.solve_next(shocked, "one_cluster_+30%", true) || !bench.solve_next(fleet, "back", true))
    return false;
  shocked = fleet;
  for (auto& traffic : shocked.traffic)
    if (traffic.service_class == ClassIndex(0)) traffic.demand_per_s *= 1.15;
  if (!bench.solve_next(shocked, "one_model_+15%", true) || !bench.solve_next(fleet, "back", true))
    return false;
  shocked = fleet;
  lose_engines(shocked, 0.02, rng);
  if (!bench.solve_next(shocked, "engines_lost_2%", true) || !bench.solve_next(fleet, "back", true))
    return false;
  shocked = fleet;
  for (auto& traffic : shocked.traffic) traffic.demand_per_s *= 1.5;
  return bench.solve_next(shocked, "demand_x1.5", true) && bench.solve_next(fleet, "back", true);
}

}  // namespace

int run_bench(const BenchOptions& options) {
  for (const std::string& size : options.sizes)
    for (const double utilisation : options.utilisations) {
      FleetRecipe recipe;
      recipe.utilisation = utilisation;
      recipe.ties = options.ties;
      if (std::sscanf(size.c_str(), "%ux%ux%u", &recipe.clusters, &recipe.engines, &recipe.models) != 3) {
        std::fprintf(stderr, "'%s' is not a size; write clusters x engines x models, like 50x2000x20\n",
                     size.c_str());
        return 2;
      }
      if (!bench_instance(size, recipe, options)) return 1;
    }
  return 0;
}

}  // namespace signalbox::optimizer
