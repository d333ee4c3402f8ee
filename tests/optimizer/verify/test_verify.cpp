#include <boost/test/unit_test.hpp>
#include <functional>
#include <limits>

#include "cluster-config/policy/compile.hpp"
#include "optimizer/verify/verify.hpp"

using namespace signalbox;
using verify::Fault;

namespace {

constexpr const char* policy_text = R"(policy test version 1 owner "o" review_by 2027-01-01
topology { zone eu { region eu-west } zone us { region us-east } }
models { m versions 1.0  n versions 1.0 }
class gold { tenants gold_* model m criticality critical residency zone eu strict }
class base { tenants * model m criticality sheddable residency any }
class other { tenants * model n criticality standard residency any }
otherwise reject 403
limits { load(engine) <= 0.85 * capacity }
shed order sheddable, standard floor standard 5%
)";

/// A legal plan for two clusters and three engines, to be spoiled.
struct Case {
  policy::CompiledPolicy policy;
  schema::FleetTable table;
  std::vector<schema::RoutingSnapshot> snapshots;
  std::vector<verify::Standing> standings;
  double heard = 1.0;
  std::vector<verify::Before> before;

  Case() {
    auto compiled = policy::compile(policy_text);
    BOOST_REQUIRE(compiled.policy.has_value());
    policy = *compiled.policy;
    table.clusters = {{ClusterName("c1"), DomainName("eu-west"), DomainName("eu")},
                      {ClusterName("c2"), DomainName("us-east"), DomainName("us")}};
    for (int e = 0; e < 3; ++e) {
      schema::EngineRow row;
      row.name = EngineName("e" + std::to_string(e));
      row.cluster = ClusterIndex(e == 2 ? 1 : 0);
      row.models = {ModelName("m")};
      if (e == 2) row.models.push_back(ModelName("n"));
      table.engines.push_back(row);
      standings.push_back({HealthState::ready, 1.0, 0.0002, 0.0, 3e-5});
    }
    table.content = digest_of("table");
    for (const char* cluster : {"c1", "c2"}) {
      schema::RoutingSnapshot s;
      s.cluster = ClusterName(cluster);
      s.policy = policy.hash;
      s.table = table.content;
      s.weights = {row(0, 0, 0.5), row(0, 1, 0.5), row(1, 0, 0.25), row(1, 2, 0.75), row(2, 2, 1.0)};
      for (std::size_t c = 0; c < 3; ++c) s.admits.push_back({ClassIndex(c), 1.0, 4.0, 200.0, 100.0});
      for (std::size_t e = 0; e < 3; ++e)
        s.prices.push_back({EngineIndex(e), 50.0, 0.4, 0.85, 1.0, schema::Binding::none});
      snapshots.push_back(s);
    }
  }
  static schema::WeightRow row(std::size_t c, std::size_t e, double weight) {
    return {ClassIndex(c), EngineIndex(e), weight, 1.0};
  }
  std::vector<verify::Violation> judge() const {
    return verify::verify({policy, table, snapshots, standings, heard, before});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_legal_plan_passes) {
  const auto violations = Case().judge();
  for (const auto& violation : violations) BOOST_ERROR(violation.text);
}

BOOST_AUTO_TEST_CASE(each_way_to_break_the_policy_is_named) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Row {
    const char* name;
    Fault want;
    std::function<void(Case&)> spoil;
  };
  const Row rows[] = {
      {"weight not a number", Fault::not_finite, [&](Case& c) { c.snapshots[0].weights[0].weight = nan; }},
      {"weight above one", Fault::not_finite, [](Case& c) { c.snapshots[0].weights[0].weight = 1.5; }},
      {"admitted twice over", Fault::not_finite, [](Case& c) { c.snapshots[0].admits[0].admit = 2.0; }},
      {"price not a number", Fault::not_finite, [&](Case& c) { c.snapshots[1].prices[0].price = nan; }},
      {"sum a millionth off", Fault::sum, [](Case& c) { c.snapshots[0].weights[0].weight += 1e-6; }},
      {"no such engine", Fault::unknown_row,
       [](Case& c) { c.snapshots[0].weights[4].engine = EngineIndex(9); }},
      {"no such class", Fault::unknown_row,
       [](Case& c) { c.snapshots[0].weights[4].request_class = ClassIndex(9); }},
      {"rows swapped", Fault::disorder,
       [](Case& c) { std::swap(c.snapshots[0].weights[0], c.snapshots[0].weights[1]); }},
      {"row twice", Fault::disorder, [](Case& c) { c.snapshots[0].weights[1] = c.snapshots[0].weights[0]; }},
      {"another policy", Fault::wrong_policy, [](Case& c) { c.snapshots[0].policy = digest_of("x"); }},
      {"another table", Fault::wrong_table, [](Case& c) { c.snapshots[0].table = digest_of("x"); }},
      {"class left out", Fault::uncovered, [](Case& c) { c.snapshots[0].weights.pop_back(); }},
      {"out of its zone", Fault::not_allowed,
       [](Case& c) { c.snapshots[0].weights[1].engine = EngineIndex(2); }},
      {"wrong model", Fault::wrong_model, [](Case& c) { c.snapshots[0].weights[4].engine = EngineIndex(1); }},
      {"engine gone", Fault::out_of_service, [](Case& c) { c.standings[0].state = HealthState::gone; }},
      {"engine draining", Fault::out_of_service,
       [](Case& c) { c.standings[2].state = HealthState::draining; }},
      {"planned above the ceiling", Fault::over_ceiling,
       [](Case& c) { c.snapshots[0].prices[1].planned_load = 0.86; }},
      {"above the ceiling in truth", Fault::over_ceiling,
       [](Case& c) { c.snapshots[0].admits[0].planned_rps = 80.0; }},
      {"degraded, planned as whole", Fault::over_ceiling,
       [](Case& c) { c.standings[1].capacity_factor = 0.3; }},
      {"slower than the plan took it", Fault::over_ceiling,
       [](Case& c) { c.standings[1].per_sequence_s = 0.02; }},
      {"critical refused before sheddable", Fault::shed_order,
       [](Case& c) { c.snapshots[0].admits[0].admit = 0.5; }},
      {"below its floor, with room", Fault::floor, [](Case& c) { c.snapshots[0].admits[2].admit = 0.01; }},
      {"heard too little", Fault::coverage, [](Case& c) { c.heard = 0.1; }},
      {"a cluster without a plan", Fault::missing_cluster, [](Case& c) { c.snapshots.pop_back(); }},
      {"a cluster with two plans", Fault::missing_cluster,
       [](Case& c) { c.snapshots[1].cluster = ClusterName("c1"); }},
  };
  for (const Row& row : rows) {
    Case spoiled;
    row.spoil(spoiled);
    bool named = false;
    for (const auto& violation : spoiled.judge()) {
      named |= violation.fault == row.want;
      BOOST_TEST(violation.text.size() > 10u);
    }
    BOOST_TEST(named, row.name);
  }
}

BOOST_AUTO_TEST_CASE(what_may_be_refused_is_not_a_violation) {
  Case c;
  c.snapshots[0].admits[1].admit = 0.0;  // sheddable goes first
  c.snapshots[0].weights.erase(c.snapshots[0].weights.begin() + 2, c.snapshots[0].weights.begin() + 4);
  BOOST_TEST(c.judge().empty());
  c.snapshots[0].admits[0].admit = 0.5;  // then, with nothing lesser left, critical
  BOOST_TEST(c.judge().empty());
}

BOOST_AUTO_TEST_CASE(an_engine_whose_memory_is_full_is_full) {
  Case c;
  c.snapshots[0].admits[1].admit = 0.0;
  c.snapshots[0].admits[2].admit = 0.01;
  for (auto& price : c.snapshots[0].prices) price.capacity = price.planned_load;
  BOOST_TEST(c.judge().empty());
}

BOOST_AUTO_TEST_CASE(a_hold_plan_needs_no_coverage) {
  Case c;
  c.heard = 0.1;
  for (auto& s : c.snapshots) s.kind = schema::PlanKind::hold;
  BOOST_TEST(c.judge().empty());
}

// The policy above has `limits` already: these come with a policy that says them there.
namespace {

struct Limited : Case {
  explicit Limited(const std::string& limits) {
    std::string text = policy_text;
    const std::string said = "load(engine) <= 0.85 * capacity";
    text.replace(text.find(said), said.size(), said + "\n" + limits + "\n");
    auto compiled = policy::compile(text);
    BOOST_REQUIRE_MESSAGE(compiled.policy.has_value(), policy::render(compiled.errors, text, "test"));
    policy = *compiled.policy;
    for (auto& s : snapshots) s.policy = policy.hash;
  }
  std::vector<Fault> faults() const {
    std::vector<Fault> out;
    for (const auto& violation : judge()) {
      BOOST_TEST_MESSAGE(violation.text);
      out.push_back(violation.fault);
    }
    return out;
  }
  void lose(std::size_t e) {
    standings[e].state = HealthState::gone;
    for (auto& s : snapshots) s.prices[e].planned_load = 0;
  }
  /// The first cluster's row of `base` on the three engines.
  void base(double a, double b, double c) {
    auto& weights = snapshots[0].weights;
    weights = {row(0, 0, 0.5), row(0, 1, 0.5)};
    for (const auto& [engine, weight] : {std::pair(0, a), std::pair(1, b), std::pair(2, c)})
      if (weight > 0) weights.push_back(row(1, static_cast<std::size_t>(engine), weight));
    weights.push_back(row(2, 2, 1.0));
  }
};

const std::vector<Fault> none;

}  // namespace

BOOST_AUTO_TEST_CASE(caps_are_judged_while_the_engines_that_are_left_can_keep_them) {
  Limited engine("weight(engine) <= 0.75");
  BOOST_TEST((engine.faults() == none));  // `other` has but one engine
  engine.base(0.2, 0, 0.8);
  BOOST_TEST((engine.faults() == std::vector{Fault::weight_cap}));
  engine.lose(1);  // gold has but one
  engine.snapshots[0].weights[0].weight = 1;
  engine.snapshots[0].weights.erase(engine.snapshots[0].weights.begin() + 1);
  engine.snapshots[1].weights[0].weight = 1;
  engine.snapshots[1].weights.erase(engine.snapshots[1].weights.begin() + 1);
  BOOST_TEST((engine.faults() == std::vector{Fault::weight_cap}));  // of base, which has two
  engine.lose(0);
  for (auto& s : engine.snapshots)
    s.weights = {Case::row(1, 2, 1.0), Case::row(2, 2, 1.0)}, s.admits[0].admit = 0;
  BOOST_TEST((engine.faults() == none));
  Limited cluster("weight(cluster) <= 0.8");
  BOOST_TEST((cluster.faults() == none));
  cluster.base(0.5, 0.4, 0.1);
  BOOST_TEST((cluster.faults() == std::vector{Fault::weight_cap}));
  for (const char* level : {"region", "zone"}) {
    Limited outer("weight(" + std::string(level) + ") <= 0.8");
    BOOST_TEST((outer.faults() == none));  // gold may leave neither
    outer.base(0.5, 0.4, 0.1);
    BOOST_TEST((outer.faults() == std::vector{Fault::weight_cap}));
  }
}

// Of `base` in the first cluster 0.5, 0.25 and 0.25 are in force.
BOOST_AUTO_TEST_CASE(churn_is_judged_unless_other_limits_want_it) {
  Limited limited("churn L1 <= 0.2 per snapshot");
  const auto in_force = [&](double may_move) {
    limited.before = {{ClusterName("c1"),
                       ClassIndex(1),
                       may_move,
                       {{EngineIndex(0), 0.5}, {EngineIndex(1), 0.25}, {EngineIndex(2), 0.25}}}};
  };
  in_force(0.2);
  limited.base(0.4, 0.35, 0.25);
  BOOST_TEST((limited.faults() == none));
  limited.base(0.39, 0.36, 0.25);
  BOOST_TEST((limited.faults() == std::vector{Fault::churn}));
  limited.snapshots[0].admits[1].planned_rps =
      64;  // 26 ms each: with more than 0.43 of them the first has too much
  limited.base(0.4, 0.4, 0.2);
  in_force(0.05);
  BOOST_TEST((limited.faults() == none));
  limited.snapshots[0].admits[1].planned_rps = 4;
  BOOST_TEST((limited.faults() == std::vector{Fault::churn}));
  limited.lose(0);  // what it had goes to the others by what they had
  for (auto& s : limited.snapshots)
    s.weights = {Case::row(0, 1, 1.0), Case::row(1, 1, 0.5), Case::row(1, 2, 0.5), Case::row(2, 2, 1.0)};
  BOOST_TEST((limited.faults() == none));
  in_force(0.0);
  limited.snapshots[0].weights[1].weight = 0.45, limited.snapshots[0].weights[2].weight = 0.55;
  BOOST_TEST((limited.faults() == std::vector{Fault::churn}));
}

BOOST_AUTO_TEST_CASE(spread_is_judged_while_there_are_engines_enough) {
  Limited limited("spread base >= 3 engines, 3 racks");
  BOOST_TEST((limited.faults() == std::vector{Fault::spread, Fault::spread}));
  for (auto& s : limited.snapshots)
    s.weights = {Case::row(0, 0, 0.5),  Case::row(0, 1, 0.5), Case::row(1, 0, 0.25),
                 Case::row(1, 1, 0.05), Case::row(1, 2, 0.7), Case::row(2, 2, 1.0)};
  BOOST_TEST((limited.faults() == none));
  limited.base(0.25, 0.04, 0.71);
  BOOST_TEST((limited.faults() == std::vector{Fault::spread}));
  limited.table.engines[0].rack = limited.table.engines[1].rack = DomainName("r");
  BOOST_TEST((limited.faults() == none));  // no third rack
}

BOOST_AUTO_TEST_CASE(survival_is_judged_while_going_by_capacity_would_survive) {
  Limited limited("survive 1 rack for criticality >= sheddable");
  limited.snapshots[0].admits[1].planned_rps = 40;
  limited.base(1.0 / 3, 1.0 / 3, 1 - 2.0 / 3);
  BOOST_TEST((limited.faults() == none));
  limited.base(0, 0.6, 0.4);  // were the second lost, the third would get all
  BOOST_TEST((limited.faults() == std::vector{Fault::survival}));
  limited.snapshots[0].admits[1].planned_rps = 50;
  limited.base(0.3, 0.35, 0.35);  // however it is divided, it is too much for two
  BOOST_TEST((limited.faults() == none));
}

BOOST_AUTO_TEST_CASE(memory_of_hot_groups_is_judged_where_it_is_known) {
  Limited limited("");
  for (auto& s : limited.snapshots) {
    s.groups.push_back({ClassIndex(1), 7, 600, EngineIndex(0), 1, 1, 0});
    s.groups.push_back({ClassIndex(1), 8, 500, EngineIndex(0), 1, 1, 0});
  }
  BOOST_TEST((limited.faults() == none));
  limited.standings[0].kv_tokens = 2200;
  BOOST_TEST((limited.faults() == none));  // both clusters mean the same two
  limited.standings[0].kv_tokens = 2100;
  BOOST_TEST((limited.faults() == std::vector{Fault::cache_memory}));
}
