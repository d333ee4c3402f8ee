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
