#include <boost/test/unit_test.hpp>

#include <simdjson.h>

#include "messages/base/rng.hpp"
#include "tests/support/random_message.hpp"
#include "tools/console/model/state.hpp"

using namespace signalbox;
using namespace signalbox::console;
namespace dom = simdjson::dom;

namespace {

schema::Delivery delivery(std::string_view from, schema::Message message) {
  schema::Delivery out;
  out.envelope.source = ProcessName(from);
  out.message = std::move(message);
  return out;
}

schema::FleetTable table(std::size_t engines) {
  schema::FleetTable out;
  out.content = digest_of("table");
  out.clusters = {{ClusterName("east"), {}, {}}, {ClusterName("west"), {}, {}}};
  for (std::size_t i = 0; i < engines; ++i) {
    schema::EngineRow row;
    row.name = EngineName(fmt::format("e{}", i));
    row.cluster = ClusterIndex(i % 2);
    out.engines.push_back(row);
  }
  return out;
}

schema::RoutingSnapshot plan(std::size_t engines) {
  schema::RoutingSnapshot out;
  out.cluster = ClusterName("west"), out.table = digest_of("table"), out.version = {{1, ProcessName("o")}, 3};
  out.admits = {{ClassIndex(0u), 0.5, 8, 0, 0}};
  for (std::size_t i = 0; i < engines; ++i)
    out.weights.push_back({ClassIndex(0u), EngineIndex(i), 1.0 / static_cast<double>(engines), 1});
  return out;
}

struct Page {
  fleet_view::FleetView view;
  fleet_view::Timeline timeline;
  History history;

  void hear(schema::Message message, Duration at, std::string_view from = "o") {
    const auto said = delivery(from, std::move(message));
    view.on(said, instant_at(at));
    timeline.on(said, instant_at(at));
    history.on(said, view, instant_at(at));
  }
  std::string state(Duration at, Frame frame = {}) const {
    return state_json(view, timeline, history, instant_at(at), frame, nullptr);
  }
};

struct Parsed {
  dom::parser parser;
  dom::element root;
  explicit Parsed(const std::string& json) {
    BOOST_TEST_REQUIRE((parser.parse(json).get(root) == simdjson::SUCCESS), json);
  }
  std::size_t size(std::string_view path) { return dom::array(root.at_pointer(path)).size(); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(each_column_has_a_value_for_each_engine) {
  Page page;
  page.hear(table(5), 1s);
  page.hear(plan(5), 1s);
  Parsed state(page.state(2s));
  for (const auto& [name, column] : dom::object(state.root["engines"]))
    BOOST_TEST(dom::array(column).size() == 5u, name);
  BOOST_TEST(double(state.root.at_pointer("/engines/state/0")) == -1, "not judged");
  BOOST_TEST(state.size("/flows") == 5u);
  BOOST_TEST(double(state.root.at_pointer("/flows/0/2")) == 0.8, "admitted requests by weight");
  BOOST_TEST(state.size("/cluster_flows") == 2u);
  BOOST_TEST(double(state.root.at_pointer("/cluster_flows/0/2")) == 2.4);
  Parsed names(fleet_json(page.view, {}, "laptop"));
  BOOST_TEST(names.size("/engines") == 5u);
  BOOST_TEST(std::string_view(names.root.at_pointer("/engines/1/name")) == "e1");
}

BOOST_AUTO_TEST_CASE(large_fleets_are_told_by_cluster) {
  Page page;
  page.hear(table(500), 1s);
  page.hear(plan(500), 1s);
  page.hear(plan(500), 2s);
  Parsed state(page.state(2s));
  BOOST_TEST(state.size("/flows") == 0u);
  BOOST_TEST(state.size("/cluster_flows") == 2u);
  BOOST_TEST(page.state(2s).size() < 200'000u);
  Parsed history(history_json(page.view, page.timeline, page.history));
  BOOST_TEST(history.size("/labels") == 2u);
  BOOST_TEST(history.size("/samples/1/shares") == 2u);
}

BOOST_AUTO_TEST_CASE(a_sample_a_second_and_events_after_a_number) {
  Page page;
  page.hear(table(2), 1s);
  schema::HealthVerdict verdict;
  verdict.engine = EngineName("e0");
  for (int i = 0; i < 50; ++i) {
    verdict.state = i % 2 == 0 ? HealthState::ready : HealthState::gone;
    page.hear(verdict, 1s + i * 100ms, "monitor");
  }
  BOOST_TEST(page.history.samples().size() == 5u);
  Parsed all(page.state(9s));
  BOOST_TEST(all.size("/events") == 50u);
  Parsed some(page.state(9s, {"v", false, 0, 0, false, 48, 0}));
  BOOST_TEST(some.size("/events") == 2u);
  BOOST_TEST(std::int64_t(some.root.at_pointer("/events/0/n")) == 49);
}

BOOST_AUTO_TEST_CASE(decisions_are_kept_and_found) {
  Page page;
  for (std::size_t i = 0; i < History::most_decisions + 5; ++i) {
    schema::DecisionRecord record;
    record.decision = fmt::format("d{}", i);
    record.class_name = "chat";
    record.refused = i % 2 == 0 ? schema::RefuseReason::none : schema::RefuseReason::queue_full;
    page.hear(record, 1s, "router");
  }
  BOOST_TEST(page.history.find("d0") == nullptr);
  BOOST_TEST_REQUIRE(page.history.find("d9") != nullptr);
  BOOST_TEST(page.history.decisions().size() == History::most_decisions);
  Parsed state(page.state(2s, {"v", false, 0, 0, false, 0, History::most_decisions + 4}));
  BOOST_TEST(state.size("/decisions") == 1u);
  BOOST_TEST(std::string_view(state.root.at_pointer("/decisions/0/outcome")) == "open");
}

BOOST_AUTO_TEST_CASE(whatever_is_said_the_page_gets_json) {
  Rng rng(3);
  tests::RandomMessage random(rng, 6);
  Page page;
  for (int i = 0; i < 600; ++i)
    page.hear(random.make_at(rng.below(schema::message_count)), 1s + i * 20ms, "n");
  Parsed state(page.state(60s));
  Parsed fleet(fleet_json(page.view, {}, "a \"fleet\""));
  Parsed history(history_json(page.view, page.timeline, page.history));
  Parsed engine(engine_json(page.view, EngineName("n"), instant_at(60s)));
}
