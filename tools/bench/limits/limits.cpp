#include "tools/bench/limits/limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>

#include "actors/global_optimizer/child/solver_child.hpp"
#include "actors/global_optimizer/machine/judge.hpp"
#include "actors/global_optimizer/machine/snapshots.hpp"
#include "cluster-config/policy/compile.hpp"
#include "messages/codec/codec.hpp"
#include "optimizer/synthetic/synthetic.hpp"

namespace signalbox::bench {
namespace {

using global_optimizer::Facts;

struct Case {
  const char* name;
  std::string limits;
};

/// By name, what a policy says. One class is critical.
std::vector<Case> cases(std::uint32_t models) {
  std::string spread;
  for (std::uint32_t m = 0; m < models; ++m) spread += fmt::format("spread k{} >= 6 engines, 4 racks\n", m);
  const std::string caps =
      "weight(engine) <= 0.2\nweight(rack) <= 0.3\nweight(cluster) <= 0.5\nweight(region) <= 0.8\n";
  const std::string survive =
      "survive 1 rack for criticality >= critical\nsurvive 1 cluster for criticality >= critical\n";
  return {{"none", ""},
          {"caps", caps},
          {"spread", spread},
          {"survival", survive},
          {"all", caps + spread + survive}};
}

Instant steady_now() { return instant_at(std::chrono::steady_clock::now().time_since_epoch()); }

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * double(t.tv_sec) + 1e-6 * double(t.tv_nsec);
}

/// Of the solvers that have ended: with what it takes them to start and to read the problem.
double children_cpu_ms() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  const auto ms = [](const timeval& t) { return 1e3 * double(t.tv_sec) + 1e-3 * double(t.tv_usec); };
  return ms(use.ru_utime) + ms(use.ru_stime);
}

Result<kit::PolicyPtr> policy_of(std::uint32_t models, const std::string& limits) {
  std::string text = "policy bench version 1\nmodels {";
  for (std::uint32_t m = 0; m < models; ++m) text += fmt::format(" m{}", m);
  text += " }\n";
  for (std::uint32_t m = 0; m < models; ++m)
    text += fmt::format("class k{} {{ tenants *  model m{}  criticality {}  residency any }}\n", m, m,
                        m == 2 ? "critical" : "standard");
  text += "otherwise reject 403\nlimits {\nload(engine) <= 0.9 * capacity\n" + limits + "}\n";
  auto compiled = policy::compile_text(text, "bench.policy");
  if (!compiled) return tl::unexpected(compiled.error());
  return std::make_shared<const policy::CompiledPolicy>(*std::move(compiled));
}

/// Engines stand in clusters by turns, in four racks each, in five regions.
schema::FleetTable table_of(const LimitsLoad& load, const optimizer::FleetState& fleet) {
  schema::FleetTable out;
  out.fleet = "bench";
  for (std::uint32_t c = 0; c < load.clusters; ++c)
    out.clusters.push_back(
        {ClusterName(fmt::format("c{}", c)), DomainName(fmt::format("r{}", c % 5)), DomainName("z")});
  for (std::uint32_t e = 0; e < load.engines; ++e) {
    schema::EngineRow row;
    row.name = EngineName(fmt::format("e{}", e));
    row.cluster = ClusterIndex(e % load.clusters);
    row.rack = DomainName(fmt::format("c{}-{}", e % load.clusters, e / load.clusters % 4));
    out.engines.push_back(std::move(row));
  }
  for (const optimizer::Route& route : fleet.routes) {
    auto& models = out.engines[route.engine.at()].models;
    const ModelName model(fmt::format("m{}", fleet.traffic[route.source.at()].service_class.value));
    if (std::ranges::find(models, model) == models.end()) models.push_back(model);
  }
  out.content = kit::content_of(out);
  return out;
}

Facts facts_of(const LimitsLoad& load, const kit::PolicyPtr& policy) {
  optimizer::FleetRecipe recipe;
  recipe.clusters = load.clusters, recipe.engines = load.engines, recipe.models = load.models;
  recipe.utilisation = load.utilisation;
  Facts out;
  out.fleet = optimizer::synthetic_fleet(recipe);
  for (optimizer::Route& route : out.fleet.routes) route.cache_value_s = 0;  // the verifier knows shapes only
  out.fleet.limits.load_ceiling = policy->limits.load_ceiling;
  out.table = std::make_shared<const schema::FleetTable>(table_of(load, out.fleet));
  out.policy = policy;
  out.as_of = instant_at(std::chrono::seconds(1));
  for (optimizer::TrafficState& traffic : out.fleet.traffic) {
    traffic.shape.context_tokens = traffic.shape.uncached_prompt_tokens + traffic.shape.output_tokens / 2;
    const double rate = traffic.demand_per_s;
    out.expected.push_back(
        {.rate_per_s = rate, .sure_per_s = rate, .planned_per_s = rate, .shape = traffic.shape});
  }
  out.in_force.assign(out.fleet.routes.size(), 0.0);
  out.health.assign(out.fleet.engines.size(), HealthState::ready);
  for (std::size_t c = 0; c < policy->classes.size(); ++c)
    out.allowed.push_back(kit::allowed_engines(*out.table, *policy, ClassIndex(c)));
  return out;
}

Result<optimizer::Plan> solve(const optimizer::Problem& problem, const std::string& program) {
  optimizer::SolverChildOptions options;
  options.program = program;
  options.deadline = std::chrono::seconds(60);
  optimizer::SolverChild child(options);
  child.submit({1, problem, {}, {}}, steady_now());
  for (;;) {
    if (auto outcome = child.poll(steady_now())) {
      if (!*outcome) return fail(ErrorKind::invalid, outcome->error().text);
      return **std::move(outcome);
    }
    child.wait(std::chrono::milliseconds(100));
  }
}

Status run_case(const LimitsLoad& load, const Case& which, const Facts& basis) {
  Facts facts = basis;
  auto policy = policy_of(load.models, which.limits);
  if (!policy) return tl::unexpected(policy.error());
  facts.policy = *std::move(policy);
  facts.fleet.caps = global_optimizer::caps_of(*facts.table, facts.policy->limits);
  const auto problem = optimizer::build_problem(facts.fleet);
  if (!problem) return tl::unexpected(problem.error());
  const optimizer::BuiltProblem& built = *problem;
  const double before = children_cpu_ms();
  const auto solved = solve(built.problem, load.solver);
  const double solve_ms = children_cpu_ms() - before;
  if (!solved) return tl::unexpected(solved.error());
  const optimizer::Plan& plan = *solved;
  std::vector<double> made, judged;
  std::vector<schema::RoutingSnapshot> rows;
  Status verified;
  for (unsigned i = 0; i < std::max(1u, load.repeat); ++i) {
    double start = cpu_ms();
    rows = global_optimizer::snapshots_of(facts, built, plan, std::chrono::seconds(1));
    made.push_back(cpu_ms() - start);
    start = cpu_ms();
    verified = global_optimizer::judge(rows, facts, 1.0);
    judged.push_back(cpu_ms() - start);
  }
  if (!verified) return verified;
  std::ranges::sort(made), std::ranges::sort(judged);
  std::size_t moved = 0, binds = 0, not_held = 0, weights = 0, bytes = 0, largest = 0;
  for (const auto& snapshot : rows) {
    const std::size_t size = codec::encode(schema::Message(snapshot)).size();
    weights += snapshot.weights.size(), bytes += size, largest = std::max(largest, size);
  }
  for (const auto& snapshot : rows)
    for (const schema::LimitRow& row : snapshot.limits)
      moved += row.moved != 0 ? 1 : 0, binds += row.price_s > 0 ? 1 : 0, not_held += row.held ? 0 : 1;
  fmt::print(
      "{{\"limits\":\"{}\",\"rows_ms\":{:.2f},\"verify_ms\":{:.2f},\"moved\":{},\"binding\":{},\"not_held\":{"
      "},"
      "\"objective\":{:.9g},\"gap\":{:.3e},\"solved_gap\":{:.3e},\"solve_ms\":{:.1f},\"weights\":{},"
      "\"largest_snapshot_bytes\":{}"
      ",\"all_bytes\":{}}}\n",
      which.name, made[made.size() / 2], judged[judged.size() / 2], moved, binds, not_held,
      rows.front().objective, rows.front().gap, plan.certificate.relative_gap, solve_ms, weights, largest,
      bytes);
  std::fflush(stdout);
  return {};
}

}  // namespace

Status bench_limits(const LimitsLoad& load) {
  auto policy = policy_of(load.models, "");
  if (!policy) return tl::unexpected(policy.error());
  const Facts facts = facts_of(load, *policy);
  for (const Case& which : cases(load.models))
    if (auto done = run_case(load, which, facts); !done) return done;
  return {};
}

}  // namespace signalbox::bench
