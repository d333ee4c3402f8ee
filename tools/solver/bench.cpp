#include "tools/solver/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>

#include "optimizer/model/fleet.hpp"
#include "optimizer/solve/solve.hpp"
#include "optimizer/synthetic/synthetic.hpp"
#include "optimizer/wire/wire.hpp"

namespace signalbox::optimizer {
namespace {

struct BenchOptions {
  std::vector<std::string> sizes{"5x50x3", "20x500x10", "50x2000x20"};
  std::vector<double> utilisations{0.7, 0.9};
  std::vector<std::string> steps;  ///< empty: all
  bool ties = false;
  bool churn = false;
  double target_gap = 1e-3;
  unsigned repeat = 3;
  std::string dump;  ///< folder for the requests; empty: none
};

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * double(t.tv_sec) + 1e-6 * double(t.tv_nsec);
}

/// Of this program's own memory: getrusage() would count what the one that started it held.
double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kilobytes = 0;
  while (status >> word)
    if (word == "VmHWM:") status >> kilobytes;
  return kilobytes / 1024.0;
}

/// What happens to a settled fleet.
struct Shock {
  const char* name;
  std::function<void(FleetState&, Rng&)> apply;
};

const std::array<Shock, 7>& shocks() {
  static const std::array<Shock, 7> all{{
      {"noise_2%", [](FleetState& fleet, Rng& rng) { perturb_demand(fleet, 0.02, rng); }},
      {"noise_2%_again", [](FleetState& fleet, Rng& rng) { perturb_demand(fleet, 0.02, rng); }},
      {"cluster_+30%",
       [](FleetState& fleet, Rng&) {
         for (auto& traffic : fleet.traffic)
           if (traffic.cluster == ClusterIndex(0)) traffic.demand_per_s *= 1.3;
       }},
      {"model_+15%",
       [](FleetState& fleet, Rng&) {
         for (auto& traffic : fleet.traffic)
           if (traffic.service_class == ClassIndex(0)) traffic.demand_per_s *= 1.15;
       }},
      {"engines_-2%", [](FleetState& fleet, Rng& rng) { lose_engines(fleet, 0.02, rng); }},
      {"demand_x1.5",
       [](FleetState& fleet, Rng&) {
         for (auto& traffic : fleet.traffic) traffic.demand_per_s *= 1.5;
       }},
      {"demand_x0.5",
       [](FleetState& fleet, Rng&) {
         for (auto& traffic : fleet.traffic) traffic.demand_per_s *= 0.5;
       }},
  }};
  return all;
}

/// One fleet, its last plan, and what comes next.
class Bench {
 public:
  Bench(std::string size, FleetRecipe recipe, const BenchOptions& options)
      : size_(std::move(size)), recipe_(recipe), options_(options) {}

  int run() {
    const FleetState fleet = synthetic_fleet(recipe_);
    Rng rng(recipe_.seed + 1000);
    if (!solve_next(fleet, "cold", false, true)) return 1;
    if (options_.steps.size() == 1 && wanted("cold")) return 0;
    // What a running optimizer starts from: a few warm solves after the cold one.
    for (int i = 0; i < 3; ++i) {
      FleetState noisy = fleet;
      perturb_demand(noisy, 0.02, rng);
      if (!solve_next(noisy, "", true, true)) return 1;
    }
    for (const Shock& shock : shocks()) {
      FleetState shocked = fleet;
      shock.apply(shocked, rng);
      if (wanted(shock.name) && !solve_next(shocked, shock.name, true, false)) return 1;
    }
    return 0;
  }

 private:
  bool wanted(const std::string& step) const {
    const auto& steps = options_.steps;
    return steps.empty() || std::find(steps.begin(), steps.end(), step) != steps.end();
  }

  bool solve_next(const FleetState& fleet, const std::string& step, bool warm, bool keep) {
    auto built = build_problem(fleet);
    if (!built) return std::fprintf(stderr, "%s\n", built.error().text().c_str()), false;
    built->problem.reference_per_s.clear();
    if (options_.churn && warm)
      built->problem.reference_per_s = carried_flows(problem_, plan_, built->problem);
    SolveRequest request{1, std::move(built->problem), {}, {}};
    if (warm)
      request.warm = {plan_.price, carried_flows(problem_, plan_, request.problem),
                      carried_shed(problem_, plan_, request.problem)};
    request.options.target_gap = options_.target_gap;
    const bool shown = !step.empty() && wanted(step);
    if (shown && !options_.dump.empty() && !dump(request, step)) return false;
    std::vector<double> took;
    Plan plan;
    for (unsigned i = 0; i < (shown ? std::max(1u, options_.repeat) : 1u); ++i) {
      const double start = cpu_ms();
      auto solved = solve(request.problem, request.options, request.warm);
      took.push_back(cpu_ms() - start);
      if (!solved) return std::fprintf(stderr, "%s\n", solved.error().text().c_str()), false;
      plan = std::move(*solved);
    }
    if (shown) print(step, took, request.problem, plan);
    if (keep) problem_ = std::move(request.problem), plan_ = std::move(plan);
    return true;
  }

  bool dump(const SolveRequest& request, const std::string& step) const {
    const std::string path = fmt::format("{}/{}-{}{}-{}.request", options_.dump, size_, recipe_.utilisation,
                                         recipe_.ties ? "-ties" : "", step);
    const auto bytes = encode(request);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) return std::fprintf(stderr, "cannot write %s\n", path.c_str()), false;
    return true;
  }

  void print(const std::string& step, std::vector<double> took, const Problem& problem,
             const Plan& plan) const {
    std::sort(took.begin(), took.end());
    double demand = 0, shed = 0, fullest = 0;
    for (std::size_t s = 0; s < problem.sources.size(); ++s)
      demand += problem.sources[s].demand_per_s, shed += plan.shed_per_s[s];
    for (std::size_t e = 0; e < problem.engines.size(); ++e)
      fullest = std::max(fullest, plan.load[e] / problem.engines[e].curve.capacity);
    fmt::print(
        "{{\"size\":\"{}\",\"utilisation\":{},\"ties\":{},\"step\":\"{}\",\"pairs\":{},\"cpu_ms\":{:.2f},"
        "\"median_ms\":{:.2f},"
        "\"repeat\":{},\"gap\":{:.3e},\"objective\":{:.9g},\"bound\":{:.9g},\"shed_fraction\":{:.5f},"
        "\"fullest\":{:.4f},"
        "\"sweeps\":{},\"dual_iterations\":{},\"stop\":\"{}\",\"peak_mb\":{:.1f}}}\n",
        size_, recipe_.utilisation, recipe_.ties, step, problem.pairs.size(), took.front(),
        took[took.size() / 2], took.size(), plan.certificate.relative_gap, plan.certificate.objective,
        plan.certificate.lower_bound, demand > 0 ? shed / demand : 0.0, fullest, plan.sweeps,
        plan.dual_iterations, to_string(plan.stop), peak_megabytes());
    std::fflush(stdout);
  }

  std::string size_;
  FleetRecipe recipe_;
  const BenchOptions& options_;
  Problem problem_;
  Plan plan_;
};

/// Reads "clusters x engines x models"; false if it is something else, or a model would have no engine.
bool read_size(const std::string& text, FleetRecipe& recipe) {
  char rest = 0;
  const int read =
      std::sscanf(text.c_str(), "%ux%ux%u%c", &recipe.clusters, &recipe.engines, &recipe.models, &rest);
  return read == 3 && recipe.clusters > 0 && recipe.models > 0 && recipe.engines >= recipe.models &&
         recipe.engines <= 1'000'000;
}

std::string check_size(const std::string& text) {
  FleetRecipe recipe;
  if (read_size(text, recipe)) return {};
  return "'" + text +
         "' is not a size; write clusters x engines x models, like 50x2000x20, with at least an engine per "
         "model";
}

int run_bench(const BenchOptions& options) {
  for (const std::string& size : options.sizes)
    for (const double utilisation : options.utilisations) {
      FleetRecipe recipe;
      recipe.utilisation = utilisation;
      recipe.ties = options.ties;
      if (!read_size(size, recipe)) return 2;
      if (const int code = Bench(size, recipe, options).run(); code != 0) return code;
    }
  return 0;
}

std::string check_step(const std::string& text) {
  std::string known = "cold";
  for (const Shock& shock : shocks()) {
    if (text == shock.name) return {};
    known += std::string(", ") + shock.name;
  }
  return text == "cold" ? std::string() : "'" + text + "' is not a step; the steps are " + known;
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Times solves of invented fleets: a cold one, and warm ones after noise and shocks");
  auto options = std::make_shared<BenchOptions>();
  bench->add_option("SIZE", options->sizes, "Clusters x engines x models, like 50x2000x20")
      ->check(CLI::Validator(check_size, "SIZE"))
      ->capture_default_str();
  bench->add_option("--utilisation", options->utilisations, "Planned load over capacity")
      ->check(CLI::Range(0.01, 5.0))
      ->capture_default_str();
  bench->add_option("--step", options->steps, "Only these steps")->check(CLI::Validator(check_step, "STEP"));
  bench->add_flag("--ties", options->ties, "Engines of one region and generation are exactly alike");
  bench->add_flag("--churn", options->churn,
                  "Warm solves pay for each request that leaves the engine of the last plan");
  bench->add_option("--gap", options->target_gap, "Certified relative gap to reach")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  bench
      ->add_option("--repeat", options->repeat,
                   "Solves of each step; the least CPU time and the median are said")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  bench
      ->add_option("--dump", options->dump, "Folder for each step's request, as the solver's protocol has it")
      ->check(CLI::ExistingDirectory);
  bench->footer(
      "Writes one JSON object a line. Exit codes: 0 done, 1 a solve failed, else wrong arguments.\n"
      "Example: signalbox-solver bench 50x2000x20 --utilisation 0.9 --step cold --step engines_-2%");
  bench->callback([options] {
    if (const int code = run_bench(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace signalbox::optimizer
