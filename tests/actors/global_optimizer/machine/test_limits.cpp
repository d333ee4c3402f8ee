// Each limit of the policy where it binds: what is published holds it, and says so.
#include <algorithm>

#include "actors/global_optimizer/machine/judge.hpp"
#include "actors/global_optimizer/machine/snapshots.hpp"
#include "tests/actors/global_optimizer/machine/planned.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using namespace signalbox::global_optimizer::testing;

namespace {

const ClusterName east("east");

/// The small fleet under a policy with these lines more, asked for so many requests a second in the east.
struct World {
  World(const std::string& lines, double rate_per_s, schema::FleetTable fleet = tests::small_table()) {
    auto compiled = policy::compile_text(tests::small_policy_text() + lines, "test.policy");
    BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().text()));
    policy = shared_policy(*std::move(compiled));
    table = shared_table(std::move(fleet));
    DemandBook demand;
    Instant now = instant_at(1s);
    for (int i = 0; i < 60; ++i)
      demand.hear(report_of(east, policy->hash, static_cast<std::uint64_t>(rate_per_s / 2), 400, 100),
                  policy->hash, now += 500ms);
    planned = solve_for(gather(table, policy, {}, demand, {}, now));
    snapshots = snapshots_of(planned.facts, planned.built, planned.plan, 1s);
    const Status judged = judge(snapshots, planned.facts, 1.0);
    BOOST_TEST(judged.has_value(), (judged ? "" : judged.error().text()));
    for (const auto& s : snapshots) {
      const Status sound = schema::check(s);
      BOOST_TEST(sound.has_value(), (sound ? "" : sound.error().text()));
    }
  }
  const schema::RoutingSnapshot& of_east() const { return snapshots.front(); }
  double weight(std::size_t engine) const {
    for (const auto& row : of_east().weights)
      if (row.request_class == ClassIndex(0) && row.engine.at() == engine) return row.weight;
    return 0;
  }
  kit::PolicyPtr policy;
  kit::TablePtr table;
  Planned planned;
  std::vector<schema::RoutingSnapshot> snapshots;
};

/// A and b stand in one rack.
schema::FleetTable one_rack() {
  schema::FleetTable out = tests::small_table();
  out.engines[1].rack = out.engines[0].rack;
  out.content = kit::content_of(out);
  return out;
}

}  // namespace

/// A is twice as fast.
schema::FleetTable fast_a() {
  schema::FleetTable out = tests::small_table();
  for (double* time :
       {&out.engines[0].step_s, &out.engines[0].per_sequence_s, &out.engines[0].per_prefill_token_s})
    *time /= 2;
  out.content = kit::content_of(out);
  return out;
}

BOOST_AUTO_TEST_CASE(an_engine_s_cap_binds) {
  const World free("", 6, fast_a());
  BOOST_TEST(free.weight(0) > 0.5);
  const World capped("limits { weight(engine) <= 0.4 }\n", 6, fast_a());
  for (std::size_t e = 0; e < 3; ++e) BOOST_TEST(capped.weight(e) <= 0.4 + 1e-9);
  BOOST_TEST(capped.weight(1) + capped.weight(2) >= 0.6 - 1e-9);
}

BOOST_AUTO_TEST_CASE(a_failure_domain_s_cap_binds) {
  const World free("", 6, one_rack());
  BOOST_TEST(free.weight(0) + free.weight(1) > 0.6);
  const World rack("limits { weight(rack) <= 0.6 }\n", 6, one_rack());
  BOOST_TEST(rack.weight(0) + rack.weight(1) <= 0.6 + 1e-9);
  BOOST_TEST(rack.weight(2) >= 0.4 - 1e-9);
  const World cluster("limits { weight(cluster) <= 0.7 }\n", 6);
  BOOST_TEST(cluster.weight(0) + cluster.weight(1) <= 0.7 + 1e-9);
}

BOOST_AUTO_TEST_CASE(the_load_ceiling_binds_and_its_price_says_so) {
  const World low("limits { load(engine) <= 0.3 * capacity }\n", 8);
  std::size_t full = 0;
  for (const auto& row : low.of_east().prices) {
    BOOST_TEST(row.planned_load <= 0.3 + 1e-6);
    full += row.binding == schema::Binding::capacity ? 1 : 0;
  }
  BOOST_TEST(full > 0u);
}

BOOST_AUTO_TEST_CASE(memory_and_batch_bind_before_the_load_does) {
  schema::FleetTable small = tests::small_table();
  small.engines[0].kv_tokens = 2000;
  small.engines[1].max_batch = 3;
  small.content = kit::content_of(small);
  const World world("", 10, small);
  const auto& prices = world.of_east().prices;
  BOOST_TEST((prices[0].binding == schema::Binding::kv_memory));
  BOOST_TEST((prices[1].binding == schema::Binding::batch));
  BOOST_TEST(prices[0].capacity < 0.85);
  BOOST_TEST(prices[1].capacity < 0.85);
}

// The west is another region. A request and its answer are 27 kB.
BOOST_AUTO_TEST_CASE(egress_keeps_requests_at_home) {
  const World world("", 10);
  Facts dear = world.planned.facts;
  BOOST_TEST(dear.fleet.routes[0].egress_s == 0);
  BOOST_TEST(dear.fleet.routes[2].egress_s == 1e-6 * (400 * 4 + 100 * 250),
             boost::test_tools::tolerance(1e-9));
  dear.fleet.objective.egress = 1000;
  const Planned kept = solve_for(std::move(dear));
  BOOST_TEST(kept.plan.flow_per_s[2] < 0.8 * world.planned.plan.flow_per_s[2]);
  Facts off = world.planned.facts;
  off.fleet.objective.egress = 0;
  BOOST_TEST(solve_for(std::move(off)).plan.flow_per_s[2] >= world.planned.plan.flow_per_s[2] - 1e-3);
}

BOOST_AUTO_TEST_CASE(a_snapshot_says_what_the_plan_costs_by_its_parts) {
  const World world("", 8);
  const auto& costs = world.of_east().costs;
  BOOST_REQUIRE(costs.size() == enum_size<schema::CostPart>);
  double sum = 0;
  for (const auto& row : costs) sum += row.cost;
  BOOST_TEST(sum == world.of_east().objective, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(world.of_east().moved == 0);
}
