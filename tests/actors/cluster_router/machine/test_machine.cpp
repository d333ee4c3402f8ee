#include <boost/test/unit_test.hpp>

#include "messages/codec/codec.hpp"
#include "tests/actors/cluster_router/machine/driver.hpp"

using namespace signalbox;
using namespace signalbox::cluster_router;
using testing::driver;

namespace {
std::string text_of(const schema::Message& message) {
  const auto bytes = codec::encode(message);
  return {bytes.begin(), bytes.end()};
}
}  // namespace

BOOST_AUTO_TEST_CASE(the_transcript_is_as_recorded) { tests::check_transcript("cluster_router", driver()); }

BOOST_AUTO_TEST_CASE(a_restarted_router_serves_at_once_from_its_disk) {
  schema::RoutingSnapshot snapshot;
  snapshot.version = {{5, ProcessName("opt-1")}, 7};
  snapshot.cluster = ClusterName("east");
  snapshot.policy = tests::small_policy().hash;
  snapshot.table = tests::small_table().content;
  snapshot.weights = {{ClassIndex(0), EngineIndex(0), 1.0, 2.0}};
  const Kept kept{tests::small_policy_text(), text_of(tests::small_table()), text_of(snapshot)};
  tests::check_transcript("cluster_router_kept", driver(kept));
}

BOOST_AUTO_TEST_CASE(damaged_state_is_as_good_as_none) {
  for (const Kept& kept :
       {Kept{"policy", "x", "y"}, Kept{tests::small_policy_text(), "\x81", std::string(99, '\xdd')}}) {
    Machine machine = driver(kept).make();
    Machine::Effects effects;
    machine.on_wake(instant_at(0s), effects);
    BOOST_TEST((machine.view().standing.snapshot == SnapshotVersion{}));
  }
}

BOOST_AUTO_TEST_CASE(decisions_are_handed_out_only_while_somebody_listens) {
  Machine machine = driver(Kept{tests::small_policy_text(), {}, {}}).make();
  Machine::Effects effects;
  machine.on_wake(instant_at(0s), effects);
  const auto wanted = [&](Duration at) {
    machine.on_wake(instant_at(at), effects);
    return machine.view().view->publish;
  };
  const auto hear = [&](std::vector<ProcessName> messages, Duration at,
                        std::string_view forwarder = "bus-1") {
    schema::Delivery delivery;
    delivery.envelope.source = ProcessName(forwarder);
    delivery.message = schema::Interest{std::move(messages)};
    machine.on(delivery, instant_at(at), effects);
  };
  BOOST_TEST(!wanted(1s).decisions);
  hear({ProcessName("decision_record"), ProcessName("order")}, 2s);
  BOOST_TEST(wanted(2s).decisions);
  BOOST_TEST(!wanted(2s).inputs);
  hear({ProcessName("decision_inputs")}, 3s, "bus-2");
  BOOST_TEST((wanted(3s) == routing::Publish{true, true}));
  hear({}, 4s);
  BOOST_TEST((wanted(4s) == routing::Publish{false, true}));
  BOOST_TEST((wanted(20s) == routing::Publish{}), "a forwarder that says nothing more wants nothing");
}

BOOST_AUTO_TEST_CASE(what_clients_suffer_from_raises_alerts_that_clear_when_it_is_over) {
  Machine machine = driver(Kept{tests::small_policy_text(), {}, {}}).make();
  std::vector<schema::Alert> alerts;
  const auto collect = [&](Machine::Effects&& effects) {
    for (const auto& message : effects.publish)
      if (const auto* alert = std::get_if<schema::Alert>(&message)) alerts.push_back(*alert);
  };
  const auto wake = [&](Duration at) {
    Machine::Effects effects;
    machine.on_wake(instant_at(at), effects);
    collect(std::move(effects));
  };
  const auto tell = [&](std::uint64_t denied, ClassIndex shed, Duration at) {
    routing::Batch batch;
    batch.policy = tests::small_policy().hash;
    batch.retries_denied = denied;
    batch.demand.push_back({.request_class = shed, .offered = 3, .shed = 2});
    Machine::Effects effects;
    machine.on(Machine::Input(BatchIn{batch}), instant_at(at), effects);
    collect(std::move(effects));
  };
  wake(0s);
  tell(0, ClassIndex(1), 1s);  // batch is sheddable
  BOOST_TEST(alerts.empty());
  tell(2, ClassIndex(0), 2s);
  BOOST_TEST_REQUIRE(alerts.size() == 2u);
  BOOST_TEST(alerts[0].name.str() == "retry-budget-empty");
  BOOST_TEST(alerts[1].name.str() == "critical-shed");
  BOOST_TEST(alerts[1].summary == "requests of the critical class chat are refused");
  for (int s = 3; s < 12; ++s) wake(std::chrono::seconds(s));
  for (const auto& alert : alerts) BOOST_TEST(alert.raised);  // a while after, too
  for (int s = 12; s < 15; ++s) wake(std::chrono::seconds(s));
  for (std::size_t last = 1; last <= 2; ++last) BOOST_TEST(!alerts[alerts.size() - last].raised);
}
