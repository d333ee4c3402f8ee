#include <boost/test/unit_test.hpp>

#include "tools/fleet_view/show.hpp"

using namespace signalbox;
using fleet_view::FleetView;

namespace {

constexpr Instant at(Duration d) { return instant_at(d); }

void hear(FleetView& view, std::string_view from, schema::Message message, Instant now, Duration age = 0s) {
  schema::Delivery delivery;
  delivery.envelope.source = ProcessName(from);
  delivery.age = age;
  delivery.message = std::move(message);
  view.on(delivery, now);
}

schema::RoutingSnapshot snapshot(std::uint64_t sequence, double weight) {
  schema::RoutingSnapshot s;
  s.version = {{3, ProcessName("o1")}, sequence};
  s.cluster = ClusterName("west");
  s.table = digest_of("table");
  s.weights = {{ClassIndex(0), EngineIndex(1), weight, 2.0}};
  return s;
}

schema::FleetTable table() {
  schema::FleetTable t;
  t.content = digest_of("table");
  t.clusters = {{ClusterName("west"), DomainName("r"), DomainName("z")}};
  for (const char* name : {"e1", "e2"}) {
    schema::EngineRow row;
    row.name = EngineName(name);
    row.cluster = ClusterIndex(0);
    t.engines.push_back(row);
  }
  return t;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_highest_version_of_a_snapshot_stays) {
  FleetView view;
  hear(view, "o1", snapshot(7, 0.5), at(1s));
  hear(view, "o1", snapshot(6, 0.1), at(2s));
  const auto& kept = view.snapshots.at(ClusterName("west"));
  BOOST_CHECK_EQUAL(kept.message.version.sequence, 7u);
  BOOST_CHECK(kept.age(at(3s)) == 2s);
}

BOOST_AUTO_TEST_CASE(ages_count_from_when_it_was_said) {
  FleetView view;
  hear(view, "o1", snapshot(1, 1), at(10s), 4s);
  BOOST_CHECK(view.snapshots.begin()->second.age(at(11s)) == 5s);
}

BOOST_AUTO_TEST_CASE(rows_are_named_by_the_table_that_they_index) {
  FleetView view;
  BOOST_CHECK_EQUAL(view.engine_name(digest_of("table"), EngineIndex(1)), "#1");
  hear(view, "o1", table(), at(1s));
  BOOST_CHECK_EQUAL(view.engine_name(digest_of("table"), EngineIndex(1)), "e2");
  BOOST_CHECK_EQUAL(view.engine_name(digest_of("other"), EngineIndex(1)), "#1");
  BOOST_CHECK_EQUAL(view.engine_name(digest_of("table"), EngineIndex(2)), "#2");
}

BOOST_AUTO_TEST_CASE(the_verdict_that_was_said_last_counts) {
  FleetView view;
  schema::HealthVerdict verdict;
  verdict.engine = EngineName("e1");
  verdict.state = HealthState::ready;
  hear(view, "m1", verdict, at(10s));
  verdict.state = HealthState::gone;
  hear(view, "m2", verdict, at(11s), 5s);
  BOOST_CHECK(view.verdict(EngineName("e1"))->message.state == HealthState::ready);
  BOOST_CHECK(view.verdict(EngineName("e2")) == nullptr);
}

BOOST_AUTO_TEST_CASE(the_leader_is_who_says_so_in_the_highest_term) {
  FleetView view;
  BOOST_CHECK(view.leader() == nullptr);
  for (const auto& [id, term, leads] :
       {std::tuple{"o1", 4, true}, std::tuple{"o2", 5, true}, std::tuple{"o3", 6, false}}) {
    schema::Beat beat;
    beat.role = Role::global_optimizer;
    beat.id = ProcessName(id);
    beat.leads = leads;
    beat.term = {static_cast<std::uint64_t>(term), ProcessName(id)};
    hear(view, id, beat, at(1s));
  }
  BOOST_CHECK_EQUAL(view.leader()->from.str(), "o2");
}

BOOST_AUTO_TEST_CASE(a_cleared_alert_is_gone) {
  FleetView view;
  schema::Alert alert;
  alert.name = ProcessName("no_leader");
  hear(view, "o1", alert, at(1s));
  BOOST_CHECK_EQUAL(view.alerts.size(), 1u);
  alert.raised = false;
  hear(view, "o1", alert, at(2s));
  BOOST_CHECK(view.alerts.empty());
}

BOOST_AUTO_TEST_CASE(weights_of_an_engine_come_with_its_price_and_where_it_lost) {
  FleetView view;
  hear(view, "o1", table(), at(1s));
  auto s = snapshot(1, 0.25);
  s.limits = {{ClassIndex(0), EngineIndex(1), schema::PolicyLimit::spread, 0.05, true, 0.25}};
  s.prices = {{EngineIndex(1), 0.5, 0.7, 0.8, 1.0, schema::Binding::capacity}};
  s.runners_up = {{ClassIndex(2), EngineIndex(1), 0.125, schema::LosingReason::dearer, 0.25}};
  s.costs = {{schema::CostPart::network, 1.5}};
  s.moved = 0.125, s.cause = "e2 is degraded";
  hear(view, "o1", s, at(1s));
  BOOST_CHECK_EQUAL(
      as_text(show_weights(view, at(1s), EngineName("e2"))),
      "weights\n"
      "cluster  class  engine  weight  planned_inflight   price  planned_load  capacity  binding\n"
      "west     #0     e2      0.2500              2.00  0.5000         0.700     0.800  capacity\n"
      "\n"
      "price\n"
      "cluster  engine   price  planned_load  capacity  slack  slowness  binding   sentence\n"
      "west     e2      0.5000         0.700     0.800  0.100      1.00  capacity  its engine time is used "
      "up to the "
      "headroom\n"
      "\n"
      "not_used\n"
      "cluster  class  engine  reason  nearer_s  less_loaded  sentence\n"
      "west     #2     e2      dearer    0.1250        0.250  a request costs more there: it would be used "
      "if 125 ms "
      "nearer or 25 % less loaded\n"
      "\n"
      "limits\n"
      "cluster  class  engine  limit    moved  price_s  held  sentence\n"
      "west     #0     e2      spread  0.0500   0.2500  yes   the class is served by as many engines and "
      "racks "
      "as the policy asks for\n"
      "\n"
      "costs\n"
      "part      cost  sentence\n"
      "network  1.500  round trips from clusters to engines\n"
      "\n"
      "change\n"
      "cluster  version  moved  cause\n"
      "west     3@o1.1   0.125  e2 is degraded\n");
  BOOST_CHECK(show_weights(view, at(1s), EngineName("e1")).front().rows.empty());
  BOOST_CHECK_EQUAL(show_weights(view, at(1s), {}, ClusterName("west")).size(), 6u);
  BOOST_CHECK(show_weights(view, at(1s), {}, ClusterName("east")).front().rows.empty());

  const auto rows_for = [&](const char* request_class) {
    std::string out;
    for (const auto& table : show_reasons(view, ClusterName("west"), request_class))
      out += table.name + " " + std::to_string(table.rows.size()) + "; ";
    return out;
  };
  BOOST_CHECK_EQUAL(rows_for("#0"), "weights 1; price 1; not_used 0; limits 1; ");
  BOOST_CHECK_EQUAL(rows_for("#2"), "weights 0; price 1; not_used 1; limits 0; ");
  BOOST_CHECK_EQUAL(rows_for("#1"), "weights 0; price 0; not_used 0; limits 0; ");
}
