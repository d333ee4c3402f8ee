#include <boost/test/unit_test.hpp>
#include <cmath>

#include "actors/feedback_balancer/machine/machine.hpp"
#include "cluster-config/policy/compile.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::feedback_balancer;

namespace {

double sum_of(const std::vector<Place>& row) {
  double sum = 0;
  for (const Place& place : row) sum += place.weight;
  return sum;
}

/// A fleet of two engines whose load is proportional to weight times slowness; engine 0 becomes 3 times slower at period
/// 20. Returns the weight of engine 0, period by period.
std::vector<double> play(Tuning tuning) {
  Scores scores(2, tuning);
  std::vector<Place> row{{0, 0.5, true}, {1, 0.5, true}};
  std::vector<double> out;
  for (int period = 0; period < 120; ++period) {
    const double slowness = period < 20 ? 1 : 3;
    scores.observe({row[0].weight * slowness, row[1].weight});
    nudge(row, scores.acted_on(), tuning.gain);
    out.push_back(row[0].weight);
  }
  return out;
}

int reversals(const std::vector<double>& weights, std::size_t from) {
  int count = 0;
  double last = 0;
  for (std::size_t i = from + 1; i < weights.size(); ++i) {
    const double step = weights[i] - weights[i - 1];
    if (std::abs(step) < 0.01) continue;
    if (last != 0 && (step > 0) != (last > 0)) ++count;
    last = step;
  }
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_nudge_moves_weight_from_the_loaded_to_the_idle_and_keeps_the_sum) {
  std::vector<Place> row{{0, 0.5, true}, {1, 0.5, true}};
  nudge(row, {0.8, 0.4}, 0.5);
  BOOST_TEST(row[0].weight < 0.45);
  BOOST_TEST(sum_of(row) == 1.0, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(random_rows_stay_distributions) {
  Rng rng(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Place> row;
    std::vector<double> scores;
    const std::size_t n = 1 + rng.below(6);
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      row.push_back({i, rng.chance(0.2) ? 0 : rng.uniform(), rng.chance(0.8)});
      scores.push_back(rng.chance(0.2) ? 0 : rng.uniform(0, 4));
      any |= row.back().serves;
    }
    nudge(row, scores, rng.uniform(0, 20));
    BOOST_TEST(sum_of(row) == (any ? 1.0 : 0.0), boost::test_tools::tolerance(1e-9));
    for (const Place& place : row) BOOST_TEST((place.serves ? place.weight > 0 : place.weight == 0));
  }
}

BOOST_AUTO_TEST_CASE(an_engine_that_is_back_gets_a_share) {
  std::vector<Place> row{{0, 1.0, true}, {1, 0.0, false}};
  nudge(row, {0.5, 0.5}, 0.5);
  BOOST_TEST((row[0].weight == 1 && row[1].weight == 0));
  row[1].serves = true;
  nudge(row, {0.5, 0.5}, 0.5);
  BOOST_TEST(row[1].weight > 0.2);
}

BOOST_AUTO_TEST_CASE(scores_lag_by_their_delay) {
  Scores scores(1, {0.5, 1.0, 2});
  for (const double load : {1.0, 2.0, 3.0, 4.0}) scores.observe({load});
  BOOST_TEST(scores.acted_on()[0] == 2.0);
  scores.observe({std::nan("")});
  BOOST_TEST(scores.acted_on()[0] == 3.0);
}

BOOST_AUTO_TEST_CASE(a_gentle_prompt_loop_settles_and_a_sharp_late_one_overshoots_and_oscillates) {
  const auto gentle = play({0.2, 0.5, 0});
  BOOST_TEST(gentle.back() == 0.25, boost::test_tools::tolerance(0.05));  // loads are equal at one to three
  BOOST_TEST(reversals(gentle, 20) <= 1);

  const auto sharp = play({1.5, 0.5, 4});
  BOOST_TEST(*std::min_element(sharp.begin() + 20, sharp.end()) < 0.15);  // overshoot
  BOOST_TEST(reversals(sharp, 20) >= 8);
  BOOST_TEST(reversals(sharp, 80) >= 2, "it does not settle");
}

namespace {

struct Fleet {
  Machine machine;
  kit::Effects<kit::None> effects;

  Fleet() : machine(options()) { machine.on_wake(instant_at(0s), effects); }

  static Options options() {
    Options out;
    out.id = ProcessName("balancer");
    out.table.clusters = {{ClusterName("east"), DomainName("r"), DomainName("z")},
                          {ClusterName("west"), DomainName("r"), DomainName("z")}};
    for (const char* name : {"e1", "e2"}) {
      schema::EngineRow row;
      row.name = EngineName(name);
      row.cluster = ClusterIndex(0u);
      row.models = {ModelName("m")};
      row.max_batch = 10;
      out.table.engines.push_back(row);
    }
    out.table.content = kit::content_of(out.table);
    out.kept_term = "4\n";
    return out;
  }
  void hear(schema::Message message, Instant now) {
    schema::Delivery delivery;
    delivery.envelope.source = ProcessName("someone");
    delivery.message = std::move(message);
    machine.on(delivery, now, effects);
  }
  std::vector<schema::RoutingSnapshot> snapshots() const {
    std::vector<schema::RoutingSnapshot> out;
    for (const auto& m : effects.publish)
      if (const auto* s = std::get_if<schema::RoutingSnapshot>(&m)) out.push_back(*s);
    return out;
  }
};

schema::Policy policy_message() {
  const std::string text =
      "policy p version 1\nmodels { m }\nclass chat { tenants * model m criticality standard residency any "
      "}\n"
      "otherwise reject 403\n";
  return {"p", 1, policy::compile_text(text, "p")->hash, text};
}

schema::EngineSignal signal(const char* engine, double running) {
  schema::EngineSignal out;
  out.cluster = ClusterName("east");
  out.engine = EngineName(engine);
  out.running = running;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_publishes_what_routers_accept_for_every_cluster) {
  Fleet fleet;
  BOOST_TEST(fleet.effects.persist.size() == 1u);
  BOOST_TEST(fleet.effects.persist[0].bytes == "5\n");
  fleet.hear(policy_message(), instant_at(1s));
  fleet.hear(signal("e1", 8), instant_at(1s));
  fleet.hear(signal("e2", 2), instant_at(1s));
  fleet.machine.on_wake(instant_at(1s), fleet.effects);
  const auto said = fleet.snapshots();
  BOOST_TEST_REQUIRE(said.size() == 2u);
  for (const auto& s : said) {
    BOOST_TEST(schema::check(s).has_value());
    BOOST_TEST((s.version == SnapshotVersion{{5, ProcessName("balancer")}, 1}));
    BOOST_TEST((s.kind == schema::PlanKind::feedback));
    BOOST_TEST_REQUIRE(s.weights.size() == 2u);
    BOOST_TEST(s.weights[0].weight < s.weights[1].weight);
    BOOST_TEST(s.weights[0].weight + s.weights[1].weight == 1.0, boost::test_tools::tolerance(1e-9));
    BOOST_TEST((s.allowed.size() == 1 && s.allowed[0].engines == schema::Bytes{3}));
  }
}

BOOST_AUTO_TEST_CASE(an_engine_that_is_gone_gets_nothing) {
  Fleet fleet;
  fleet.hear(policy_message(), instant_at(1s));
  schema::HealthVerdict verdict;
  verdict.engine = EngineName("e1");
  verdict.state = HealthState::gone;
  verdict.capacity_factor = 0;
  fleet.hear(verdict, instant_at(1s));
  fleet.machine.on_wake(instant_at(1s), fleet.effects);
  const auto said = fleet.snapshots();
  BOOST_TEST_REQUIRE(said.size() == 2u);
  BOOST_TEST_REQUIRE(said[0].weights.size() == 1u);
  BOOST_TEST(said[0].weights[0].engine.value == 1u);
}
