// Plans and hold plans of invented fleets, most of them overloaded: each must pass verification, whatever the classes' work is.
#include <boost/test/unit_test.hpp>

#include "actors/global_optimizer/machine/hold.hpp"
#include "actors/global_optimizer/machine/judge.hpp"
#include "actors/global_optimizer/machine/shed_order.hpp"
#include "actors/global_optimizer/machine/snapshots.hpp"
#include "cluster-config/policy/compile.hpp"
#include "messages/base/rng.hpp"
#include "optimizer/solve/solve.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;

namespace {

constexpr std::string_view policy_text = R"(policy test version 1 owner "o" review_by 2027-01-01
topology { zone eu { region r-eu } zone us { region r-us } }
models { m versions 1.0  n versions 1.0 }
class gold { tenants gold_* model m criticality critical residency zone eu strict }
class batch { tenants batch_* model m criticality sheddable residency any }
class plain { tenants * model m criticality standard residency any }
class spare { tenants batch_* model n criticality sheddable residency zone us strict }
class other { tenants * model n criticality standard residency any }
otherwise reject 403
limits { load(engine) <= 0.85 * capacity }
shed order sheddable, standard cost sheddable 30s, standard 120s, critical 600s floor standard 5%
)";

constexpr int clusters = 3;
const Duration period = 1s;

kit::PolicyPtr make_policy() {
  auto compiled = policy::compile_text(policy_text, "test");
  BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().text()));
  return std::make_shared<const policy::CompiledPolicy>(*std::move(compiled));
}

kit::TablePtr make_table(Rng& rng) {
  schema::FleetTable out;
  for (int c = 0; c < clusters; ++c)
    out.clusters.push_back({ClusterName("c" + std::to_string(c)), DomainName(c == 0 ? "r-us" : "r-eu"),
                            DomainName(c == 0 ? "us" : "eu")});
  const std::size_t engines = 3 + rng.below(8);
  for (std::size_t e = 0; e < engines; ++e) {
    schema::EngineRow row;
    row.name = EngineName("e" + std::to_string(e));
    row.cluster = ClusterIndex(rng.below(clusters));
    row.rack = DomainName(row.name.str());
    if (rng.chance(0.7)) row.models.push_back(ModelName("m"));
    if (row.models.empty() || rng.chance(0.5)) row.models.push_back(ModelName("n"));
    out.engines.push_back(row);
  }
  out.content = kit::content_of(out);
  return std::make_shared<const schema::FleetTable>(std::move(out));
}

optimizer::EngineState random_engine(Rng& rng) {
  const double size = rng.lognormal(0.0, 0.6);
  optimizer::EngineState out;
  out.step = {0.02 * size, 0.0008 * size * rng.uniform(0.5, 2.0), rng.chance(0.5) ? 1e-8 : 0.0,
              1e-4 * size * rng.uniform(0.5, 2.0), rng.chance(0.2) ? 3.0 : 1.0};
  if (rng.chance(0.5)) out.kv_tokens = 1e5, out.max_batch = 48;
  out.availability = rng.chance(0.15) ? 0.5 : 1.0;
  return out;
}

/// Demand of random shape; a class may ask for a thousand times the work of another.
Expected random_demand(Rng& rng, double scale) {
  Expected out;
  const double prompt = rng.lognormal(5.0, 1.5);
  const double output = rng.chance(0.2) ? 1.0 : rng.lognormal(4.0, 1.2);
  out.shape = {prompt * (rng.chance(0.5) ? 0.4 : 1.0), output, prompt + output / 2};
  if (!rng.chance(0.1))
    out.rate_per_s = out.sure_per_s = out.planned_per_s =
        scale / (0.0008 * output + 1e-4 * out.shape.uncached_prompt_tokens);
  return out;
}

Facts random_facts(Rng& rng) {
  Facts out{make_table(rng), make_policy(), instant_at(1s), {}, {}, {}, {}, {}, {}, {}};
  for (std::size_t e = 0; e < out.table->engines.size(); ++e)
    out.fleet.engines.push_back(random_engine(rng)), out.health.push_back(HealthState::ready);
  for (std::size_t c = 0; c < out.policy->classes.size(); ++c)
    out.allowed.push_back(kit::allowed_engines(*out.table, *out.policy, ClassIndex(c)));
  const double crowding = rng.uniform(0.02, 1.2);
  for (std::size_t k = 0; k < clusters; ++k)
    for (std::size_t c = 0; c < out.policy->classes.size(); ++c) {
      if (out.allowed[c].empty()) continue;
      const auto& row = out.policy->classes[c];
      const Expected expected = random_demand(rng, crowding * rng.lognormal(0.0, 0.5));
      const optimizer::SourceIndex source(out.fleet.traffic.size());
      out.fleet.traffic.push_back({ClusterIndex(k), ClassIndex(c), expected.planned_per_s, expected.shape,
                                   row.shed_cost_seconds, row.floor_share, 10 * row.shed_cost_seconds});
      out.expected.push_back(expected);
      for (const EngineIndex e : out.allowed[c])
        out.fleet.routes.push_back(
            {source, e, out.table->engines[e.at()].cluster == ClusterIndex(k) ? 0.0 : 0.06});
    }
  out.in_force.resize(out.fleet.routes.size());
  return out;
}

/// Engines leave, as a hold plan finds them.
void lose_some(Facts& facts, Rng& rng) {
  for (std::size_t e = 0; e < facts.health.size(); ++e)
    if (rng.chance(0.25)) {
      facts.health[e] = rng.chance(0.5) ? HealthState::gone : HealthState::draining;
      facts.fleet.engines[e].availability = 0;
    }
}

struct Planned {
  std::vector<schema::RoutingSnapshot> snapshots;
  Status judged;
  bool refuses = false;
};

Planned plan_for(const Facts& facts, bool keep_order) {
  auto built = optimizer::build_problem(facts.fleet);
  BOOST_REQUIRE_MESSAGE(built.has_value(), (built ? "" : built.error().text()));
  if (keep_order) keep_shed_order(*facts.policy, built->problem);
  const auto plan = optimizer::solve(built->problem, {}, {});
  BOOST_REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : plan.error().text()));
  Planned out;
  out.snapshots = snapshots_of(facts, *built, *plan, period);
  out.judged = judge(out.snapshots, facts, 1.0);
  for (const auto& snapshot : out.snapshots) {
    const Status sound = schema::check(snapshot);
    BOOST_TEST(sound.has_value(), (sound ? "" : sound.error().text()));
    for (const auto& row : snapshot.admits) out.refuses |= row.admit < 0.99;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(classes_of_unequal_work_are_refused_in_the_policys_order) {
  int refusing = 0, out_of_order = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const Facts facts = random_facts(rng);
    const Planned planned = plan_for(facts, true);
    BOOST_TEST(planned.judged.has_value(),
               "seed " << seed << ": " << (planned.judged ? "" : planned.judged.error().text()));
    refusing += planned.refuses;
    out_of_order += !plan_for(facts, false).judged;
  }
  BOOST_TEST(refusing > 100);
  BOOST_TEST(out_of_order > 20);  // what the policy's costs alone would bring
}

BOOST_AUTO_TEST_CASE(hold_plans_keep_the_policy_too) {
  int legal = 0, refusing = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    Facts facts = random_facts(rng);
    const Planned planned = plan_for(facts, true);
    lose_some(facts, rng);
    const auto held = hold_plan(planned.snapshots, facts, period);
    BOOST_REQUIRE(held.has_value());
    const auto judged = judge(*held, facts, 1.0);
    legal += judged.has_value();
    if (!judged) BOOST_TEST_MESSAGE("seed " << seed << ": " << judged.error().text());
    for (std::size_t k = 0; k < held->size(); ++k)
      for (std::size_t c = 0; c < (*held)[k].admits.size(); ++c)
        refusing += (*held)[k].admits[c].admit < planned.snapshots[k].admits[c].admit;
  }
  BOOST_TEST(legal > 270);  // the rest: floors alone are more than what is left can carry
  BOOST_TEST(refusing > 100);
}
