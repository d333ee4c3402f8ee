// Views: what they refuse, whom they let serve, what they keep of the one before.
#include <boost/test/unit_test.hpp>

#include <functional>

#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

namespace {

using schema::ReceiptReason;

Fleet three() {
  Fleet fleet;
  fleet.engines(3).request_class("t", Criticality::standard);
  fleet.weights(ClassIndex(0), {0.5, 0.3, 0.2});
  return fleet;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bad_snapshots_are_refused_with_their_reason) {
  struct Row {
    const char* name;
    std::function<void(Fleet&)> spoil;
    ReceiptReason reason;
    const char* says;
  };
  const Row rows[] = {
      {"another cluster", [](Fleet& f) { f.snapshot->cluster = ClusterName("there"); },
       ReceiptReason::wrong_cluster, "there"},
      {"another policy", [](Fleet& f) { f.snapshot->policy = digest_of("x"); }, ReceiptReason::wrong_policy,
       "policy"},
      {"another table", [](Fleet& f) { f.snapshot->table = digest_of("x"); }, ReceiptReason::wrong_table,
       "table"},
      {"sum below 1", [](Fleet& f) { f.snapshot->weights[0].weight = 0.4; }, ReceiptReason::illegal,
       "not to 1"},
      {"negative", [](Fleet& f) { f.snapshot->weights[0].weight = -0.5; }, ReceiptReason::illegal, "-0.5"},
      {"not a number", [](Fleet& f) { f.snapshot->weights[0].weight = unknown; }, ReceiptReason::illegal,
       "nan"},
      {"no such engine", [](Fleet& f) { f.snapshot->weights[2].engine = EngineIndex(7); },
       ReceiptReason::illegal, "engine 7 of 3"},
      {"no such class", [](Fleet& f) { f.snapshot->weights[0].request_class = ClassIndex(4); },
       ReceiptReason::illegal, "class 4 of 1"},
      {"twice", [](Fleet& f) { f.snapshot->weights[1].engine = EngineIndex(0); }, ReceiptReason::illegal,
       "order"},
      {"outside the allowed set",
       [](Fleet& f) {
         f.snapshot->allowed.push_back({ClassIndex(0), {0b011}});
       },
       ReceiptReason::illegal, "may not use e2"},
      {"wrong model", [](Fleet& f) { f.table.engines[1].models = {ModelName("x")}; }, ReceiptReason::illegal,
       "may not use e1"},
      {"allowed beyond the policy",
       [](Fleet& f) {
         f.policy.zones = {{DomainName("z2"), {DomainName("r2")}}};
         f.policy.classes[0].any_zone = false;
         f.snapshot->weights.clear();
         f.snapshot->allowed.push_back({ClassIndex(0), {0b111}});
       },
       ReceiptReason::illegal, "forbids"},
      {"admits more than all", [](Fleet& f) { f.admit(ClassIndex(0), 1.5); }, ReceiptReason::illegal, "1.5"},
      {"infinite price", [](Fleet& f) { f.price(EngineIndex(0), 1e308 * 10, 0.5, 0.85); },
       ReceiptReason::illegal, "prices"},
  };
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.name) {
      Fleet fleet = three();
      BOOST_REQUIRE(build_view(fleet.inputs(), nullptr).has_value());
      row.spoil(fleet);
      const auto built = build_view(fleet.inputs(), nullptr);
      BOOST_REQUIRE(!built.has_value());
      BOOST_TEST(static_cast<int>(built.error().reason) == static_cast<int>(row.reason));
      BOOST_TEST(built.error().detail.find(row.says) != std::string::npos, built.error().detail);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_class_that_the_plan_sheds_wholly_has_no_weights) {
  Fleet fleet = three();
  fleet.snapshot->weights.clear();
  fleet.admit(ClassIndex(0), 0);
  BOOST_TEST(fleet.view()->at(ClassIndex(0)).planned.empty());
}

BOOST_AUTO_TEST_CASE(who_may_serve_by_verdict) {
  struct Row {
    HealthState state;
    double factor;
    bool eligible;
  };
  const Row rows[] = {{HealthState::ready, 1, true},      {HealthState::degraded, 0.5, true},
                      {HealthState::starting, 0.1, true}, {HealthState::starting, 0, false},
                      {HealthState::suspect, 1, false},   {HealthState::gone, 1, false},
                      {HealthState::draining, 1, false}};
  for (const Row& row : rows) {
    Fleet fleet = three();
    fleet.verdict(EngineIndex(1), row.state, row.factor);
    BOOST_TEST(fleet.view()->at(ClassIndex(0)).eligible.contains(EngineIndex(1)) == row.eligible,
               name_of(row.state) << " at " << row.factor);
  }
}

BOOST_AUTO_TEST_CASE(panic_ignores_suspicion_but_never_leaves_what_is_allowed) {
  Fleet fleet = three();
  fleet.verdict(EngineIndex(0), HealthState::suspect);
  fleet.verdict(EngineIndex(1), HealthState::suspect);
  auto row = fleet.view()->at(ClassIndex(0));
  BOOST_TEST(row.panic);
  BOOST_TEST(row.engines.size() == 3u);
  fleet.verdict(EngineIndex(0), HealthState::gone);
  fleet.verdict(EngineIndex(2), HealthState::draining);
  row = fleet.view()->at(ClassIndex(0));
  BOOST_REQUIRE(row.engines.size() == 1u);
  BOOST_TEST(row.engines[0].value == 1u);
  // Without suspicion there is nothing to ignore: the plan's weights go on.
  fleet.verdict(EngineIndex(1), HealthState::ready);
  row = fleet.view()->at(ClassIndex(0));
  BOOST_TEST(!row.panic);
  BOOST_TEST(!row.planned.empty());
}

BOOST_AUTO_TEST_CASE(a_view_lends_its_tables_to_the_next_while_only_readings_change) {
  Fleet fleet = three();
  const ViewInputs inputs = fleet.inputs();
  const auto first = *build_view(inputs, nullptr);
  ViewInputs next = inputs;
  fleet.signal(EngineIndex(1), at(3), 7, 2, 0.5);
  next.engines = fleet.heard;
  const auto second = *build_view(next, first.get());
  BOOST_TEST((second->plan == first->plan));
  BOOST_TEST(second->generation == first->generation + 1);
  BOOST_TEST(second->at(EngineIndex(1)).requests == 9.0);
  BOOST_TEST(second->at(EngineIndex(1)).kv_used == 100'000.0);
  fleet.verdict(EngineIndex(1), HealthState::gone);
  next.engines = fleet.heard;
  BOOST_TEST(((*build_view(next, second.get()))->plan != first->plan));
}

BOOST_AUTO_TEST_CASE(what_an_engine_does_not_say_is_unknown) {
  Fleet fleet = three();
  fleet.signal(EngineIndex(0), at(1), 5, 1, 0.2);
  fleet.signals[0].waiting.reset();
  fleet.signals[0].kv_usage.reset();
  const auto view = fleet.view();
  BOOST_TEST(view->at(EngineIndex(0)).requests == 5.0);
  BOOST_TEST(std::isnan(view->at(EngineIndex(0)).waiting));
  BOOST_TEST(std::isnan(view->at(EngineIndex(0)).kv_used));
  BOOST_TEST(std::isnan(view->at(EngineIndex(1)).requests));
}

BOOST_AUTO_TEST_CASE(a_plan_past_its_age_is_not_followed) {
  Fleet fleet = three();
  const auto view = fleet.view();
  const policy::Stale& stale = fleet.policy.stale;
  BOOST_TEST(view->plan_fresh(at(to_seconds(stale.snapshot_warn) - 0.1)));
  BOOST_TEST(!view->plan_fresh(at(to_seconds(stale.snapshot_warn) + 0.1)));
  BOOST_TEST(view->plan_in_force(at(to_seconds(stale.snapshot_degrade) - 0.1)));
  BOOST_TEST(!view->plan_in_force(at(to_seconds(stale.snapshot_degrade) + 0.1)));
}

BOOST_AUTO_TEST_CASE(engines_are_found_by_name_and_a_table_without_this_cluster_is_refused) {
  Fleet fleet = three();
  const auto view = fleet.view();
  BOOST_TEST(view->find_engine("e2")->value == 2u);
  BOOST_TEST(!view->find_engine("e9").has_value());
  ViewInputs inputs = fleet.inputs();
  inputs.cluster = ClusterName("elsewhere");
  BOOST_TEST(build_view(inputs, nullptr).error().detail.find("elsewhere") != std::string::npos);
}

}  // namespace signalbox::routing::test
