#include <boost/test/unit_test.hpp>

#include "tools/fleet_view/show.hpp"
#include "tools/fleet_view/status.hpp"
#include "tools/fleet_view/timeline.hpp"

using namespace signalbox;
using namespace signalbox::fleet_view;

namespace {

constexpr Instant at(Duration d) { return instant_at(d); }

schema::Delivery delivery(std::string_view from, schema::Message message, Duration age = 0s) {
  schema::Delivery out;
  out.envelope.source = ProcessName(from);
  out.age = age;
  out.message = std::move(message);
  return out;
}

schema::FleetTable table(std::initializer_list<const char*> names) {
  schema::FleetTable out;
  std::string all;
  out.clusters = {{ClusterName("west"), {}, {}}, {ClusterName("east"), {}, {}}};
  for (const char* name : names) {
    schema::EngineRow row;
    row.name = EngineName(name);
    row.cluster = ClusterIndex(out.engines.size() % 2);
    out.engines.push_back(row);
    all += name;
  }
  out.content = digest_of(all);
  return out;
}

/// Half of the 10 requests a second from the west to each engine.
schema::RoutingSnapshot plan(const Digest& table) {
  schema::RoutingSnapshot out;
  out.version = {{1, ProcessName("o1")}, 1};
  out.cluster = ClusterName("west");
  out.table = table;
  out.admits = {{ClassIndex(0u), 1.0, 10, 0, 0}};
  out.weights = {{ClassIndex(0u), EngineIndex(0u), 0.25, 3}, {ClassIndex(0u), EngineIndex(1u), 0.75, 5}};
  out.prices = {{EngineIndex(1u), 0.5, 0.6, 0.8, 1, schema::Binding::capacity}};
  return out;
}

schema::OutcomeReport outcome(std::string_view cluster, const Digest& table, std::uint64_t succeeded,
                              double latency) {
  schema::OutcomeReport out;
  out.cluster = ClusterName(cluster);
  out.table = table;
  out.period = 2s;
  schema::OutcomeRow row;
  row.engine = EngineIndex(1u);
  row.inflight = 4;
  row.succeeded = succeeded, row.latency_sum_s = latency;
  row.resets = 2;
  out.engines = {row};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_has_its_plan_and_what_all_routers_saw) {
  FleetView view;
  const auto fleet = table({"w1", "e1"});
  view.on(delivery("o1", fleet), at(1s));
  view.on(delivery("o1", plan(fleet.content)), at(1s));
  view.on(delivery("r1", outcome("west", fleet.content, 6, 3.0)), at(1s));
  view.on(delivery("r2", outcome("east", fleet.content, 2, 3.0)), at(1s));
  const auto engines = engine_statuses(view, at(2s));
  BOOST_TEST_REQUIRE(engines.size() == 2u);
  BOOST_TEST(engines[0].planned_share == 0.25);
  const EngineStatus& e1 = engines[1];
  BOOST_TEST(e1.cluster.str() == "east");
  BOOST_TEST(e1.planned_share == 0.75);
  BOOST_TEST(std::abs(e1.use().value() - 0.75) < 1e-12);
  BOOST_TEST(e1.inflight == 8.0);
  BOOST_TEST(e1.served_rps == 4.0);
  BOOST_TEST(e1.failed_rps == 2.0);
  BOOST_TEST(e1.latency_s.value() == 0.75);
  BOOST_TEST(!e1.state.has_value());
  BOOST_TEST(!engine_statuses(view, at(60s))[1].latency_s.has_value(), "old reports are no news");
}

BOOST_AUTO_TEST_CASE(rows_of_an_older_table_are_found_by_name) {
  FleetView view;
  const auto before = table({"w1", "e1"}), after = table({"new", "e1", "w1"});
  view.on(delivery("o1", before), at(1s));
  view.on(delivery("o1", after), at(2s));
  view.on(delivery("o1", plan(before.content)), at(2s));
  const auto engines = engine_statuses(view, at(3s));
  BOOST_TEST(engines[0].planned_share == 0.0);
  BOOST_TEST(engines[1].planned_share == 0.75);
  BOOST_TEST(engines[2].planned_share == 0.25);
}

BOOST_AUTO_TEST_CASE(a_timeline_notes_changes_and_nothing_else) {
  Timeline timeline;
  schema::HealthVerdict verdict;
  verdict.engine = EngineName("e1");
  const auto say = [&](HealthState state, Duration when, Duration age = 0s) {
    verdict.state = state;
    timeline.on(delivery("monitor", verdict, age), at(when));
  };
  say(HealthState::ready, 1s), say(HealthState::ready, 2s), say(HealthState::gone, 3s, 500ms),
      say(HealthState::ready, 9s);
  schema::Beat beat;
  beat.role = Role::global_optimizer, beat.id = ProcessName("o1"), beat.ready = true;
  timeline.on(delivery("o1", beat), at(4s));
  beat.leads = true, beat.term = {3, ProcessName("o1")};
  timeline.on(delivery("o1", beat), at(5s));
  std::string text;
  for (const Event& event : timeline.events())
    text += fmt::format("{:.1f} {} {} {}>{}\n", to_seconds(event.at.time_since_epoch()), name_of(event.kind),
                        event.subject, event.from, event.to);
  BOOST_TEST(text ==
             "1.0 health e1 >ready\n"
             "2.5 health e1 ready>gone\n"
             "9.0 health e1 gone>ready\n"
             "4.0 process o1 >ready\n"
             "4.0 leader o1 >stands by\n"
             "5.0 leader o1 stands by>leads in term 3\n");
  BOOST_TEST(timeline.noted() == 6u);
}

BOOST_AUTO_TEST_CASE(a_timeline_is_bounded) {
  Timeline timeline;
  schema::HealthVerdict verdict;
  verdict.engine = EngineName("e1");
  for (std::size_t i = 0; i < Timeline::most_events + 10; ++i) {
    verdict.state = i % 2 == 0 ? HealthState::gone : HealthState::ready;
    timeline.on(delivery("m", verdict), at(i * 1s));
  }
  BOOST_TEST(timeline.events().size() == Timeline::most_events);
  BOOST_TEST(timeline.noted() == Timeline::most_events + 10);
}
