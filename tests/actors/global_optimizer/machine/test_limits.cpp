// Each limit of the policy where it binds: what is published holds it, and says so.
#include <algorithm>
#include <set>

#include "actors/global_optimizer/machine/churn.hpp"
#include "actors/global_optimizer/machine/hold.hpp"
#include "actors/global_optimizer/machine/judge.hpp"
#include "actors/global_optimizer/machine/restate.hpp"
#include "actors/global_optimizer/machine/snapshots.hpp"
#include "tests/actors/global_optimizer/machine/planned.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using namespace signalbox::global_optimizer::testing;

namespace {

using optimizer::Plan;

const ClusterName east("east");

/// The small fleet under a policy with these lines more, asked for so many requests a second in the east.
struct World {
  World(const std::string& lines, double rate_per_s, schema::FleetTable fleet = tests::small_table(),
        double sheddable_per_s = 0) {
    auto compiled = policy::compile_text(tests::small_policy_text() + lines, "test.policy");
    BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().text()));
    policy = shared_policy(*std::move(compiled));
    table = shared_table(std::move(fleet));
    DemandBook demand;
    Instant now = instant_at(1s);
    for (int i = 0; i < 60; ++i) {
      auto report = report_of(east, policy->hash, static_cast<std::uint64_t>(rate_per_s / 2), 400, 100);
      report.rows.push_back(report.rows.front());
      report.rows[1].request_class = ClassIndex(1);
      const auto count = static_cast<std::uint64_t>(sheddable_per_s / 2);
      report.rows[1].offered = report.rows[1].finished = count;
      report.rows[1].prompt_tokens = count * 400, report.rows[1].output_tokens = count * 100;
      if (count == 0) report.rows.pop_back();
      demand.hear(report, router, policy->hash, now += 500ms);
    }
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
  /// Engines to which a limit moves something of the critical class.
  std::set<std::size_t> moved_to(schema::PolicyLimit limit) const {
    std::set<std::size_t> out;
    for (const auto& row : of_east().limits)
      if (row.limit == limit && row.request_class == ClassIndex(0) && row.moved > 0 && row.held)
        out.insert(row.engine.at());
    return out;
  }
  /// Whether a little more of the critical class would go where it is cheaper if the limit let it.
  bool binds(schema::PolicyLimit limit) const {
    return std::ranges::any_of(of_east().limits, [&](const auto& row) {
      return row.limit == limit && row.request_class == ClassIndex(0) && row.held && row.price_s > 0;
    });
  }
  bool holds(schema::PolicyLimit limit) const {
    return std::ranges::none_of(of_east().limits,
                                [&](const auto& row) { return row.limit == limit && !row.held; });
  }
  /// What the verifier says of this plan under another policy's limits.
  std::string refused_under(const World& other) const {
    auto plan = snapshots;
    for (auto& s : plan) s.policy = other.policy->hash;
    Facts facts = planned.facts;
    facts.policy = other.policy;
    const Status judged = judge(plan, facts, 1.0);
    return judged ? "" : judged.error().text();
  }
  /// The published certificate is one of what is published.
  void has_honest_certificate() const {
    const Plan now = published_plan(snapshots, planned.facts, planned.built, planned.plan);
    const schema::RoutingSnapshot& s = of_east();
    BOOST_TEST(s.objective == now.certificate.objective, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(s.lower_bound == planned.plan.certificate.lower_bound);
    BOOST_TEST(s.objective >= s.lower_bound);
    BOOST_TEST(s.gap == (s.objective - s.lower_bound) / s.lower_bound, boost::test_tools::tolerance(1e-6));
  }
  kit::PolicyPtr policy;
  kit::TablePtr table;
  Planned planned;
  std::vector<schema::RoutingSnapshot> snapshots;
};

/// C is so far that nobody goes there who need not.
schema::FleetTable far_c() {
  schema::FleetTable out = tests::small_table();
  for (schema::LinkRow& link : out.links) link.rtt_s = 20;
  out.content = kit::content_of(out);
  return out;
}

/// The west is a zone of its own.
schema::FleetTable two_zones() {
  schema::FleetTable out = tests::small_table();
  out.clusters[1].zone = DomainName("zeu");
  out.content = kit::content_of(out);
  return out;
}

/// A and b stand in one rack.
schema::FleetTable one_rack(schema::FleetTable out = tests::small_table()) {
  out.engines[1].rack = out.engines[0].rack;
  out.content = kit::content_of(out);
  return out;
}

/// A is twice as fast.
schema::FleetTable fast_a() {
  schema::FleetTable out = tests::small_table();
  for (double* time :
       {&out.engines[0].step_s, &out.engines[0].per_sequence_s, &out.engines[0].per_prefill_token_s})
    *time /= 2;
  out.content = kit::content_of(out);
  return out;
}

/// The load of each engine by critical requests alone when these are lost and the routers divide their shares among the rest.
std::vector<double> load_without(const World& world, const std::vector<std::size_t>& lost) {
  std::vector<double> out(3, 0.0);
  for (const auto& s : world.snapshots)
    for (const auto& admit : s.admits) {
      if (admit.request_class != ClassIndex(0)) continue;
      double left = 0;
      const auto is_lost = [&](const auto& row) { return std::ranges::count(lost, row.engine.at()) > 0; };
      for (const auto& row : s.weights)
        if (row.request_class == ClassIndex(0) && !is_lost(row)) left += row.weight;
      for (const auto& row : s.weights)
        if (row.request_class == ClassIndex(0) && !is_lost(row)) {
          const auto& engine = world.table->engines[row.engine.at()];
          out[row.engine.at()] += admit.planned_rps * admit.admit * row.weight / left *
                                  (admit.output_tokens * engine.per_sequence_s +
                                   admit.prompt_tokens * engine.per_prefill_token_s);
        }
    }
  return out;
}

double admitted(const World& world, std::size_t c) {
  for (const auto& row : world.of_east().admits)
    if (row.request_class == ClassIndex(c)) return row.admit;
  return 0;
}

const std::vector<std::vector<std::size_t>> racks{{0}, {1}, {2}}, regions{{0, 1}, {2}};

void survives_each(const World& world, const std::vector<std::vector<std::size_t>>& domains) {
  for (const auto& lost : domains) {
    const auto load = load_without(world, lost);
    for (const double l : load) BOOST_TEST(l <= 0.85 * (1 + 1e-6));
    // And a new plan without that domain refuses nobody.
    Facts facts = world.planned.facts;
    for (const std::size_t e : lost) facts.fleet.engines[e].availability = 0;
    BOOST_TEST(solve_for(std::move(facts)).plan.shed_per_s[0] < 1e-6);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_s_cap_binds) {
  const World free("", 6, fast_a());
  BOOST_TEST(free.weight(0) > 0.5);
  const World capped("limits { weight(engine) <= 0.4 }\n", 6, fast_a());
  for (std::size_t e = 0; e < 3; ++e) BOOST_TEST(capped.weight(e) <= 0.4 + 1e-9);
  BOOST_TEST(capped.weight(1) + capped.weight(2) >= 0.6 - 1e-9);
}

// The bound is that of the capped problem: what is published is near it, though far above what no caps would cost.
BOOST_AUTO_TEST_CASE(caps_are_part_of_what_is_certified) {
  const World free("", 6, fast_a()), capped("limits { weight(engine) <= 0.4 }\n", 6, fast_a());
  BOOST_TEST(capped.of_east().objective > 1.02 * free.of_east().objective);
  BOOST_TEST(capped.of_east().lower_bound > 1.02 * free.of_east().objective);
  BOOST_TEST(capped.of_east().gap < 0.01);
  capped.has_honest_certificate();
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

BOOST_AUTO_TEST_CASE(regions_and_zones_are_capped_too) {
  const World free("", 6, two_zones());
  BOOST_TEST(free.weight(0) + free.weight(1) > 0.6);
  for (const char* level : {"region", "zone"}) {
    const World capped("limits { weight(" + std::string(level) + ") <= 0.6 }\n", 6, two_zones());
    BOOST_TEST(capped.weight(0) + capped.weight(1) <= 0.6 + 1e-9);
    BOOST_TEST(capped.weight(2) >= 0.4 - 1e-9);
    BOOST_TEST(capped.binds(schema::PolicyLimit::domain_cap));
    BOOST_TEST(free.refused_under(capped).starts_with("weight_cap"));
    capped.has_honest_certificate();
  }
  // All engines stand in zone z: it takes what no other can.
  const World alone("limits { weight(zone) <= 0.6 }\n", 6);
  BOOST_TEST(!alone.holds(schema::PolicyLimit::domain_cap));
}

BOOST_AUTO_TEST_CASE(a_zone_may_be_lost) {
  schema::FleetTable far = far_c();
  far.clusters[1].zone = DomainName("zeu");
  far.content = kit::content_of(far);
  const World free("", 2, far);
  const World safe("limits { survive 1 zone for criticality >= critical }\n", 2, far);
  BOOST_TEST(free.refused_under(safe).starts_with("survival"));
  survives_each(safe, regions);
}

// What the next request would save is what a limit a little wider saves, by solving again.
BOOST_AUTO_TEST_CASE(a_limit_s_price_is_what_a_wider_one_saves) {
  struct Row {
    const char* limit;
    schema::PolicyLimit kind;
    double cap, rate;
    schema::FleetTable table;
  };
  const Row rows[] = {{"weight(engine)", schema::PolicyLimit::weight_cap, 0.4, 6, fast_a()},
                      {"weight(rack)", schema::PolicyLimit::domain_cap, 0.6, 6, one_rack()},
                      {"weight(zone)", schema::PolicyLimit::domain_cap, 0.6, 6, two_zones()}};
  for (const Row& row : rows) {
    const auto under = [&](double cap) {
      return World("limits { " + std::string(row.limit) + " <= " + std::to_string(cap) + " }\n", row.rate,
                   row.table);
    };
    const World tight = under(row.cap), wider = under(row.cap + 0.005);
    double price = 0;
    for (const auto& l : tight.of_east().limits)
      if (l.limit == row.kind && l.request_class == ClassIndex(0)) price = std::max(price, l.price_s);
    const double rate = tight.of_east().admits.front().planned_rps;
    const double saved = (tight.of_east().objective - wider.of_east().objective) / (0.005 * rate);
    BOOST_TEST_CONTEXT(row.limit) {
      BOOST_TEST(price > 0);
      BOOST_TEST(price == saved, boost::test_tools::tolerance(0.15));
    }
  }
}

// Once the weights in force hold a limit, nothing is moved for it any more.
BOOST_AUTO_TEST_CASE(a_limit_that_moves_nothing_any_more_still_binds) {
  const World capped("limits { weight(rack) <= 0.6 }\n", 6, one_rack());
  Planned again = capped.planned;
  std::size_t r = 0;
  for (const optimizer::Route& route : again.facts.fleet.routes) {
    again.facts.in_force[r++] = 0;
    for (const auto& row :
         capped.snapshots[again.facts.fleet.traffic[route.source.at()].cluster.at()].weights)
      if (row.engine == route.engine &&
          row.request_class == again.facts.fleet.traffic[route.source.at()].service_class)
        again.facts.in_force[r - 1] = row.weight;
  }
  plan_for(again.facts.planned_for, again.facts);
  again.facts.fleet.objective.churn_cost_s = 100;  // nothing moves of itself
  again = solve_for(std::move(again.facts));
  const auto snapshots = snapshots_of(again.facts, again.built, again.plan, 1s);
  bool binds = false;
  for (const auto& l : snapshots.front().limits)
    binds |= l.limit == schema::PolicyLimit::domain_cap && l.moved == 0 && l.price_s > 0;
  BOOST_TEST(binds);
  const World wide("limits { weight(rack) <= 0.99 }\n", 6, one_rack());
  for (const auto& l : wide.of_east().limits) BOOST_TEST(l.price_s == 0);
}

// A prefills fast and decodes slowly, b the other way round.
BOOST_AUTO_TEST_CASE(a_class_that_weighs_the_first_token_goes_where_prompts_are_read_fast) {
  schema::FleetTable unlike = tests::small_table();
  unlike.engines[0].per_prefill_token_s /= 3, unlike.engines[0].step_s *= 1.5;
  unlike.engines[1].per_prefill_token_s *= 3, unlike.engines[1].step_s /= 1.5;
  unlike.content = kit::content_of(unlike);
  const auto chat_on_a = [&](const std::string& weigh) {
    std::string text = tests::small_policy_text();
    text.insert(text.find(" }\n", text.find("class chat")), weigh);
    auto compiled = policy::compile_text(text, "test.policy");
    BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().text()));
    const auto policy = shared_policy(*std::move(compiled));
    DemandBook demand;
    Instant now = instant_at(1s);
    for (int i = 0; i < 60; ++i)
      demand.hear(report_of(east, policy->hash, 2, 800, 20), router, policy->hash, now += 500ms);
    const Planned planned = solve_for(gather(shared_table(unlike), policy, {}, demand, {}, now));
    const auto snapshots = snapshots_of(planned.facts, planned.built, planned.plan, 1s);
    for (const auto& row : snapshots.front().weights)
      if (row.request_class == ClassIndex(0) && row.engine == EngineIndex(0)) return row.weight;
    return 0.0;
  };
  const double first = chat_on_a("  weigh ttft 10"), between = chat_on_a("  weigh tpot 10"),
               none = chat_on_a("");
  BOOST_TEST(first > between + 0.2);
  BOOST_TEST(first >= none - 1e-6);
  BOOST_TEST(between <= none + 1e-6);
  BOOST_TEST(chat_on_a("  weigh ttft 1 tpot 1") == none);
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

BOOST_AUTO_TEST_CASE(a_class_is_spread_over_engines_though_fewer_would_be_nearer) {
  const World free("", 2, far_c());
  BOOST_TEST(free.weight(2) == 0);
  const World spread("limits { spread chat >= 3 engines }\n", 2, far_c());
  for (std::size_t e = 0; e < 3; ++e) BOOST_TEST(spread.weight(e) >= policy::spread_rest - 1e-9);
  BOOST_TEST((spread.moved_to(schema::PolicyLimit::spread) == std::set<std::size_t>{2}));
  BOOST_TEST(free.refused_under(spread).starts_with("spread"));
  BOOST_TEST(spread.of_east().objective > free.of_east().objective);
  spread.has_honest_certificate();
  free.has_honest_certificate();
}

BOOST_AUTO_TEST_CASE(a_class_is_spread_over_racks_though_one_holds_the_near_engines) {
  const World free("", 2, one_rack(far_c()));
  const World spread("limits { spread chat >= 2 racks }\n", 2, one_rack(far_c()));
  BOOST_TEST(spread.weight(2) >= policy::spread_rest - 1e-9);
  BOOST_TEST(spread.weight(2) < 0.06);
  BOOST_TEST(free.refused_under(spread).starts_with("spread"));
}

BOOST_AUTO_TEST_CASE(caps_and_spread_are_kept_together) {
  const World both(
      "limits { weight(engine) <= 0.45  weight(cluster) <= 0.85  spread chat >= 3 engines, 3 racks }\n", 2,
      fast_a());
  BOOST_TEST(both.weight(0) <= 0.45 + 1e-9);
  BOOST_TEST(both.weight(2) >= 0.15 - 1e-9);
  both.has_honest_certificate();
}

BOOST_AUTO_TEST_CASE(any_one_rack_may_be_lost) {
  const std::string survive = "limits { survive 1 rack for criticality >= critical }\n";
  const World free("", 8, far_c());
  const World safe(survive, 8, far_c());
  BOOST_TEST(free.refused_under(safe).starts_with("survival"));
  BOOST_TEST(!safe.moved_to(schema::PolicyLimit::survival).empty());
  BOOST_TEST(safe.holds(schema::PolicyLimit::survival));
  survives_each(safe, racks);
  safe.has_honest_certificate();
  BOOST_TEST(admitted(safe, 0) == 1);
}

BOOST_AUTO_TEST_CASE(a_region_may_be_lost_and_nobody_is_refused_beforehand) {
  const World free("", 2, far_c());
  BOOST_TEST(free.weight(2) == 0);
  const World safe("limits { survive 1 region for criticality >= critical }\n", 2, far_c());
  BOOST_TEST(free.refused_under(safe).starts_with("survival"));
  survives_each(safe, regions);
  BOOST_TEST(admitted(safe, 0) == 1);
}

BOOST_AUTO_TEST_CASE(other_classes_make_room_for_what_must_survive) {
  const World safe("limits { survive 1 rack for criticality >= critical }\n", 8, far_c(), 12);
  survives_each(safe, racks);
  BOOST_TEST(admitted(safe, 0) == 1);
  BOOST_TEST(admitted(safe, 1) < 1);
  BOOST_TEST(admitted(safe, 1) > 0.2);
}

BOOST_AUTO_TEST_CASE(what_cannot_survive_is_served_and_told) {
  const World tight("limits { survive 1 rack for criticality >= critical }\n", 14);
  BOOST_TEST(!tight.holds(schema::PolicyLimit::survival));
  BOOST_TEST(admitted(tight, 0) == 1);
}

// B is gone; the hold plan goes as far as a and c suffice.
BOOST_AUTO_TEST_CASE(a_hold_plan_keeps_limits_as_far_as_the_engines_left_suffice) {
  const auto held_without_b = [](const World& world) {
    Facts facts = world.planned.facts;
    facts.fleet.engines[1].availability = 0;
    facts.health[1] = HealthState::gone;
    auto held = hold_plan(world.snapshots, facts, 1s);
    BOOST_REQUIRE(held.has_value());
    const Status judged = judge(*held, facts, 1.0);
    BOOST_TEST(judged.has_value(), (judged ? "" : judged.error().text()));
    return held->front();
  };
  const World three("limits { spread chat >= 3 engines }\n", 2);
  const auto two = held_without_b(three);
  BOOST_REQUIRE(!two.limits.empty());
  BOOST_TEST(!two.limits.back().held);
  BOOST_TEST((two.limits.back().limit == schema::PolicyLimit::spread));
  const World safe("limits { survive 1 rack for criticality >= critical }\n", 4, far_c());
  double far = 0;
  for (const auto& row : held_without_b(safe).weights)
    if (row.request_class == ClassIndex(0) && row.engine == EngineIndex(2)) far = row.weight;
  BOOST_TEST(far > 0.005);  // were a lost too, c alone would be left
}

namespace {

/// The plan that follows a world's, at another demand, under a policy with churn.
struct Next {
  Next(const World& world, const std::string& lines, double rate_per_s, double may_move,
       bool without_a = false)
      : facts(world.planned.facts) {
    auto compiled = policy::compile_text(tests::small_policy_text() + lines, "test.policy");
    BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().text()));
    facts.policy = shared_policy(*std::move(compiled));
    for (std::size_t r = 0; r < facts.fleet.routes.size(); ++r) {
      const optimizer::Route& route = facts.fleet.routes[r];
      const optimizer::TrafficState& traffic = facts.fleet.traffic[route.source.at()];
      for (const auto& row : world.snapshots[traffic.cluster.at()].weights)
        if (row.request_class == traffic.service_class && row.engine == route.engine)
          facts.in_force[r] = row.weight;
    }
    for (std::size_t s = 0; s < facts.expected.size(); ++s)
      for (double* rate :
           {&facts.expected[s].planned_per_s, &facts.expected[s].rate_per_s, &facts.expected[s].sure_per_s})
        if (*rate > 0) *rate = rate_per_s;
    if (without_a) facts.fleet.engines[0].availability = 0, facts.health[0] = HealthState::gone;
    facts.may_move.assign(facts.fleet.traffic.size(), may_move);
    plan_for(PlannedFor::most, facts);
    facts.fleet.objective.churn_cost_s = 0;
    const Planned planned = solve_for(facts);
    snapshots = snapshots_of(facts, planned.built, planned.plan, 1s);
    const Status judged = judge(snapshots, facts, 1.0);
    BOOST_TEST(judged.has_value(), (judged ? "" : judged.error().text()));
  }
  /// Of the critical class in the east; engines that are gone apart.
  double moved() const {
    std::vector<double> now(3, 0.0);
    for (const auto& row : snapshots.front().weights)
      if (row.request_class == ClassIndex(0)) now[row.engine.at()] = row.weight;
    double left = 0, out = 0;
    for (std::size_t e = 0; e < 3; ++e)
      left += facts.fleet.engines[e].availability > 0 ? facts.in_force[e] : 0;
    for (std::size_t e = 0; e < 3; ++e)
      if (facts.fleet.engines[e].availability > 0) out += std::abs(now[e] - facts.in_force[e] / left);
    return out;
  }
  double price() const {
    double out = 0;
    for (const auto& row : snapshots.front().limits)
      if (row.limit == schema::PolicyLimit::churn && row.request_class == ClassIndex(0))
        out = std::max(out, row.price_s);
    return out;
  }
  bool says(bool held) const {
    return std::ranges::any_of(snapshots.front().limits, [&](const auto& row) {
      return row.limit == schema::PolicyLimit::churn && row.held == held;
    });
  }
  Facts facts;
  std::vector<schema::RoutingSnapshot> snapshots;
};

const std::string churn = "limits { churn L1 <= 0.2 per snapshot, 0.5 per 60s }\n";

}  // namespace

BOOST_AUTO_TEST_CASE(weights_move_no_more_at_a_time_than_churn_allows) {
  const World near("", 2, far_c());
  const Next free(near, churn, 12, 2.0);  // 12 a second need c
  BOOST_TEST(free.moved() > 0.3);
  const World fast("", 2, fast_a());
  const Next little(fast, churn, 8, 2.0);
  const double wanted = little.moved();
  BOOST_TEST(wanted > 0.0);
  const Next held(fast, churn, 8, wanted / 2);
  BOOST_TEST(held.moved() == wanted / 2, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(held.says(true));
  auto whole = little.snapshots;
  for (auto& s : whole) s.policy = held.facts.policy->hash;
  const Status judged = judge(whole, held.facts, 1.0);
  BOOST_REQUIRE(!judged.has_value());
  BOOST_TEST(judged.error().text().find("churn") != std::string::npos, judged.error().text());
}

// What the next request would save by going where the plan wanted it is what a little more churn saves, by planning again.
BOOST_AUTO_TEST_CASE(churn_has_a_price_while_it_binds) {
  const World fast("", 2, fast_a());
  const Next free(fast, churn, 8, 2.0);
  BOOST_TEST(free.price() == 0);
  const double wanted = free.moved(), more = 0.01;
  const Next held(fast, churn, 8, wanted / 2), wider(fast, churn, 8, wanted / 2 + more);
  const double requests =
      held.snapshots.front().admits.front().planned_rps * more / 2;  // each one that moves counts twice
  const double saved = (held.snapshots.front().objective - wider.snapshots.front().objective) / requests;
  BOOST_TEST(held.price() > 0);
  BOOST_TEST(held.price() == saved, boost::test_tools::tolerance(0.15));
}

BOOST_AUTO_TEST_CASE(nobody_is_refused_for_churn_and_leaving_the_dead_is_free) {
  const World near("", 2, far_c());
  const Next much(near, churn, 14, 0.01);  // a and b alone cannot carry it
  BOOST_TEST(much.moved() > 0.05);
  BOOST_TEST(much.says(false));
  BOOST_TEST(much.snapshots.front().admits.front().admit > 1 - 1e-6);
  const World both("", 10);
  const Next dead(both, churn, 2, 0.0, true);
  BOOST_TEST(dead.moved() < 1e-6);
}

BOOST_AUTO_TEST_CASE(capacity_that_the_engines_in_service_lack_is_told) {
  const World busy("", 6);
  auto policy = *busy.policy;
  const auto kept = [&](double factor, std::optional<policy::DomainLevel> level, const char* place) {
    policy.limits.reserves = {{ClassIndex(0), level, DomainName(place), factor, 1}};
    Facts facts = busy.planned.facts;
    facts.policy = shared_policy(policy);
    const auto plan = snapshots_of(facts, busy.planned.built, busy.planned.plan, 1s);
    return std::ranges::none_of(plan.front().limits,
                                [](const auto& row) { return row.limit == schema::PolicyLimit::capacity; });
  };
  // Each engine carries 0.85 s/s of 0.14 s: 6.07 requests/s, a and b in region us.
  const double rate = busy.of_east().admits.front().planned_rps;
  BOOST_TEST(kept(3 * 0.85 / 0.14 / rate * 0.99, {}, "x"));
  BOOST_TEST(!kept(3 * 0.85 / 0.14 / rate * 1.01, {}, "x"));
  BOOST_TEST(kept(2 * 0.85 / 0.14 / rate * 0.99, policy::DomainLevel::region, "us"));
  BOOST_TEST(!kept(2 * 0.85 / 0.14 / rate * 1.01, policy::DomainLevel::region, "us"));
}

BOOST_AUTO_TEST_CASE(churn_is_counted_over_its_window) {
  const World world("", 6);
  Facts facts = world.planned.facts;
  auto compiled = policy::compile_text(tests::small_policy_text() + churn, "test.policy");
  facts.policy = shared_policy(*std::move(compiled));
  ChurnBook book;
  const policy::Churn& limit = facts.policy->limits.churn;
  schema::RoutingSnapshot a = world.of_east(), b = a;
  b.weights.clear();
  b.weights.push_back({ClassIndex(0), EngineIndex(0), 1.0, 0});
  double moved = 0;
  for (const auto& row : a.weights)
    if (row.request_class == ClassIndex(0))
      moved += std::abs(row.weight - (row.engine == EngineIndex(0) ? 1.0 : 0.0));
  BOOST_REQUIRE(moved > 0.35);
  const auto left = [&](Instant now) {
    book.fill(facts, now);
    return facts.may_move.front();
  };
  const Instant now = instant_at(100s);
  BOOST_TEST(left(now) == 0.2);
  book.note(a, b, limit, now);
  BOOST_TEST(left(now + 1s) == std::max(0.0, 0.5 - moved), boost::test_tools::tolerance(1e-6));
  BOOST_TEST(left(now + 60s) == 0.2);
  book.note(a, b, limit, now + 70s);
  b.policy = digest_of("another");
  book.note(a, b, limit, now + 71s);
  BOOST_TEST(left(now + 72s) == 0.2);
}
