// The bus on real sockets: what is said arrives, once, in time, and costs bounded memory.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <zmq.hpp>

#include "tests/messages/bus/fleet.hpp"
#include "tests/messages/bus/relay.hpp"

using namespace signalbox;
using namespace signalbox::bus;
using namespace signalbox::tests;

namespace {

/// Does it again and again for a while, with a pause between.
template <class Do>
void paced(Duration whole, Duration pause, Do&& act) {
  const auto until = std::chrono::steady_clock::now() + whole;
  while (std::chrono::steady_clock::now() < until) {
    act();
    std::this_thread::sleep_for(pause);
  }
}

[[maybe_unused]] std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  in >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

BOOST_AUTO_TEST_CASE(two_forwarders_at_once_deliver_everything_once) {
  Fleet fleet{bus_a, bus_b};
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {"signal/"}), inbox.handlers());
  auto speaker = fleet.node(fleet.options(proxy));
  BOOST_TEST_REQUIRE(joined(*speaker, 2));
  BOOST_TEST_REQUIRE(gets_through(*speaker, inbox, signal_of("first"), "signal/east/first/"));
  for (int i = 0; i < 200; ++i)
    BOOST_TEST(error_of(speaker->publish(signal_of(fmt::format("e{}", i)))) == "");
  BOOST_TEST(eventually([&] { return inbox.count("signal/east/e199/") == 1; }));
  for (int i = 0; i < 200; ++i) BOOST_TEST(inbox.count(fmt::format("signal/east/e{}/", i)) == 1u);
  BOOST_TEST(
      eventually([&] { return listener->stats().received.total().dropped_for(Drop::duplicate) >= 200; }));
  BOOST_TEST(listener->stats().received.total().missed == 0u);
}

BOOST_AUTO_TEST_CASE(a_forwarder_knows_what_somebody_listens_to) {
  Fleet fleet{bus_a};
  const auto listens = [&](std::initializer_list<std::string_view> names) {
    const std::vector<ProcessName> messages(names.begin(), names.end());
    return eventually([&] { return fleet.forwarders[0]->stats().listened == messages; });
  };
  BOOST_TEST(listens({}));
  auto first = fleet.node(fleet.options(monitor, {"decision/east/", "signal/"}));
  BOOST_TEST(listens({"decision_record"}), "of kept kinds nobody needs to know");
  auto second = fleet.node(fleet.options(router, {"decision/"}));
  second->subscribe("inputs/");
  BOOST_TEST(listens({"decision_inputs", "decision_record"}));
  first->stop();
  BOOST_TEST(listens({"decision_inputs", "decision_record"}));
  second->unsubscribe("decision/");
  BOOST_TEST(listens({"decision_inputs"}));
  second->stop();
  BOOST_TEST(listens({}));
}

BOOST_AUTO_TEST_CASE(a_late_joiner_gets_the_latest_values_and_their_age) {
  Fleet fleet{bus_a};
  auto speaker = fleet.node(fleet.options(proxy));
  for (int i = 0; i < 3; ++i) BOOST_TEST(error_of(speaker->publish(profile_of("e1"))) == "");
  for (int i = 0; i < 2500; ++i)
    BOOST_TEST(error_of(speaker->publish(profile_of(fmt::format("n{}", i)))) == "");
  BOOST_TEST_REQUIRE(eventually([&] { return fleet.forwarders[0]->stats().cached_topics == 2501; }));
  const auto begin = std::chrono::steady_clock::now();
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {"profile/"}), inbox.handlers());
  BOOST_TEST_REQUIRE(eventually([&] { return inbox.count() == 2501; }));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  BOOST_TEST_MESSAGE("2,501 values to a late joiner in " << took.count() << " ms");
  for (const auto& delivery : inbox.all()) {
    BOOST_TEST(delivery->age.count() > 0);
    if (delivery->topic == "profile/east/e1/") BOOST_TEST(delivery->envelope.sequence == 3u);
  }
  // Only the one that asked for them gets them.
  BOOST_TEST(fleet.forwarders[0]->stats().replayed == 2501u);
}

BOOST_AUTO_TEST_CASE(a_forwarder_that_comes_back_knows_the_latest_values_again) {
  Fleet fleet{bus_a};
  auto speaker = fleet.node(fleet.options(monitor));
  Inbox before;
  auto listener = fleet.node(fleet.options(router, {"verdict/"}), before.handlers());
  BOOST_TEST_REQUIRE(gets_through(*speaker, before, verdict_of("e1"), "verdict/e1/monitor-1/"));
  const ForwarderEndpoints at = fleet.forwarders[0]->endpoints();
  fleet.forwarders[0]->stop();
  BOOST_TEST_REQUIRE(eventually([&] { return speaker->stats().forwarders_joined == 0; }));
  BOOST_TEST(error_of(speaker->publish(verdict_of("e2"))) == "");  // said while nobody carries it

  fleet.forwarders.clear();
  fleet.start(bus_a, at.publish, at.subscribe);
  Inbox after;
  auto late = fleet.node(fleet.options(optimizer, {"verdict/"}), after.handlers());
  BOOST_TEST(eventually([&] {
    return after.count("verdict/e1/monitor-1/") == 1 && after.count("verdict/e2/monitor-1/") == 1;
  }));
  BOOST_TEST(eventually([&] { return before.count("verdict/e2/monitor-1/") == 1; }));
  BOOST_TEST(before.count("verdict/e2/monitor-1/") == 1u);
}

BOOST_AUTO_TEST_CASE(one_of_two_forwarders_killed_loses_nothing) {
  Fleet fleet{bus_a, bus_b};
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {"snapshot/east/", "decision/"}), inbox.handlers());
  auto speaker = fleet.node(fleet.options(optimizer));
  schema::RoutingSnapshot snapshot;
  snapshot.cluster = ClusterName("east");
  BOOST_TEST_REQUIRE(joined(*speaker, 2));
  const std::string topic = "snapshot/east/optimizer-1/";
  BOOST_TEST_REQUIRE(gets_through(*speaker, inbox, snapshot, topic));
  BOOST_TEST_REQUIRE(
      eventually([&] { return listener->stats().received.total().dropped_for(Drop::duplicate) > 0; }));
  std::uint64_t said = 0;
  for (int i = 0; i < 300; ++i) {
    if (i == 100) fleet.forwarders[0]->stop();
    snapshot.version.sequence = ++said;
    BOOST_TEST(error_of(speaker->publish(snapshot)) == "");
  }
  BOOST_TEST(eventually([&] {
    return std::get<schema::RoutingSnapshot>(inbox.all().back()->message).version.sequence == said;
  }));
  const auto total = listener->stats().received.total();
  BOOST_TEST(total.missed - total.recovered == 0u);
}

BOOST_AUTO_TEST_CASE(a_publisher_that_restarts_is_heard_and_its_old_life_is_not) {
  Fleet fleet{bus_a};
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {"signal/"}), inbox.handlers());
  auto first = fleet.node(fleet.options(proxy));
  BOOST_TEST_REQUIRE(gets_through(*first, inbox, signal_of("e1"), "signal/east/e1/"));
  BOOST_TEST(error_of(first->publish(signal_of("last"))) == "");
  BOOST_TEST_REQUIRE(
      eventually([&] { return inbox.count("signal/east/last/") == 1; }));  // nothing is under way
  auto options = fleet.options(proxy);
  options.incarnation = {2, 9};
  auto second = fleet.node(std::move(options));
  BOOST_TEST_REQUIRE(gets_through(*second, inbox, signal_of("e1"), "signal/east/e1/"));
  BOOST_TEST((inbox.all().back()->envelope.incarnation == Incarnation{2, 9}));
  BOOST_TEST(error_of(first->publish(signal_of("e2"))) == "");
  BOOST_TEST(
      eventually([&] { return listener->stats().received.total().dropped_for(Drop::superseded) == 1; }));
  BOOST_TEST(inbox.count("signal/east/e2/") == 0u);
}

BOOST_AUTO_TEST_CASE(one_order_of_a_short_lived_process_is_not_lost) {
  Fleet fleet{bus_a};
  Inbox inbox;
  auto listener = fleet.node(fleet.options(optimizer, {"decision/"}), inbox.handlers());
  {
    Inbox own;  // a way for the listener exists once something came through
    auto warm = fleet.node(fleet.options(router));
    BOOST_TEST_REQUIRE(gets_through(*warm, inbox, decision_of("warm"), "decision/east/router-east/"));
  }
  auto options = fleet.options(router);
  options.linger = 5s, options.incarnation = {2, 2};
  auto once = fleet.node(std::move(options));
  BOOST_TEST(error_of(once->publish(decision_of("once"))) == "");
  once->stop();
  BOOST_TEST(eventually(
      [&] { return std::get<schema::DecisionRecord>(inbox.all().back()->message).decision == "once"; }));
}

BOOST_AUTO_TEST_CASE(a_node_may_not_say_what_its_role_may_not) {
  Fleet fleet{bus_a};
  auto node = fleet.node(fleet.options(proxy));
  BOOST_TEST(error_of(node->publish(verdict_of("e1"))) ==
             "verdict/e1/proxy-east/: a engine-proxy may not say health_verdict");
  auto signal = signal_of("e1");
  signal.waiting = -3;
  BOOST_TEST(error_of(node->publish(signal)).starts_with("engine_signal.waiting: -3 is outside"));
  BOOST_TEST(node->stats().publish_refused == 2u);
}

BOOST_AUTO_TEST_CASE(ipc_in_a_private_folder_works_and_is_not_stolen) {
  const Folder folder;
  Fleet fleet{};
  const std::string publish = "ipc://" + (folder / "publish");
  const std::string subscribe = "ipc://" + (folder / "subscribe");
  fleet.start(bus_a, publish, subscribe);
  ForwarderOptions thief;
  thief.endpoints = {bus_b.id, publish, subscribe};
  thief.keyring = fleet.keys.at(bus_b.id);
  const auto stolen = Forwarder::start(std::move(thief));
  BOOST_TEST_REQUIRE(!stolen.has_value());
  BOOST_TEST((stolen.error().kind == ErrorKind::conflict));
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {"signal/"}), inbox.handlers());
  auto speaker = fleet.node(fleet.options(proxy));
  BOOST_TEST(gets_through(*speaker, inbox, signal_of("e1"), "signal/east/e1/"));
}

BOOST_AUTO_TEST_CASE(a_reader_that_stands_still_outlives_its_connection) {
  const Folder folder;
  const std::string publish = "ipc://" + (folder / "publish");
  const std::string subscribe = "ipc://" + (folder / "subscribe");
  Fleet fleet{};
  fleet.start(bus_a, publish, subscribe);
  Inbox inbox;
  std::mutex gate;
  std::atomic<bool> stands = false;
  NodeHandlers handlers;
  handlers.on_delivery = [&, deliver = inbox.handlers().on_delivery](schema::DeliveryPtr delivery) {
    stands = true;
    const std::lock_guard lock(gate);
    deliver(std::move(delivery));
  };
  std::unique_lock closed(gate);
  auto options = fleet.options(monitor, {"decision/"});
  options.heartbeat = 10ms;
  auto slow = fleet.node(std::move(options), std::move(handlers));
  Inbox others;
  auto other = fleet.node(fleet.options(optimizer, {"decision/"}), others.handlers());
  auto speaker = fleet.node(fleet.options(router));
  schema::DecisionRecord record;
  record.cluster = ClusterName("east"), record.decision = "d-1";
  const std::string topic = "decision/east/router-east/";
  BOOST_TEST_REQUIRE(eventually([&] { return speaker->publish(record).has_value() && stands; }));
  constexpr int many = 3000;  // more than fit into libzmq's own queue while it had a bound
  for (int i = 0; i < many; ++i) BOOST_TEST_REQUIRE(error_of(speaker->publish(record)) == "");
  BOOST_TEST_REQUIRE(eventually([&] { return fleet.forwarders[0]->stats().forwarded > many; }));

  fleet.forwarders.clear();
  fleet.start(bus_a, publish, subscribe);
  BOOST_TEST(gets_through(*speaker, others, record, topic));
  closed.unlock();
  BOOST_TEST(gets_through(*speaker, inbox, record, topic));
}

BOOST_AUTO_TEST_CASE(without_security_the_bus_works_on_loopback_only) {
  ForwarderOptions options;
  options.endpoints = {bus_a.id, "tcp://0.0.0.0:0", "tcp://127.0.0.1:0"};
  BOOST_TEST((Forwarder::start(options).error().kind == ErrorKind::denied));
  options.endpoints.publish = "tcp://127.0.0.1:0";
  auto forwarder = Forwarder::start(options);
  BOOST_TEST_REQUIRE(error_of(forwarder) == "");
  Fleet fleet{};
  auto plain = [&](const Identity& identity, std::vector<std::string> subscriptions) {
    auto out = fleet.options(identity, std::move(subscriptions));
    out.keyring.reset(), out.forwarders = {(*forwarder)->endpoints()};
    return out;
  };
  Inbox inbox;
  auto listener = fleet.node(plain(router, {"signal/"}), inbox.handlers());
  auto speaker = fleet.node(plain(proxy, {}));
  BOOST_TEST(gets_through(*speaker, inbox, signal_of("e1"), "signal/east/e1/"));
}

bool host_has_ipv6() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6, loopback.sin6_addr = in6addr_loopback;
  const bool has = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  if (fd >= 0) ::close(fd);
  return has;
}

BOOST_AUTO_TEST_CASE(a_bus_may_have_addresses_of_ipv6) {
  if (!host_has_ipv6()) {
    BOOST_TEST_MESSAGE("this host has no IPv6");
    return;
  }
  Fleet fleet{};
  fleet.start(bus_a, "tcp://[::1]:0", "tcp://[::1]:0");
  fleet.start(bus_b);
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {"verdict/"}), inbox.handlers());
  auto speaker = fleet.node(fleet.options(monitor));
  BOOST_TEST(joined(*speaker, 2));
  BOOST_TEST(gets_through(*speaker, inbox, verdict_of("e1"), "verdict/e1/monitor-1/"));
  fleet.forwarders[1]->stop();
  BOOST_TEST(gets_through(*speaker, inbox, verdict_of("e2"), "verdict/e2/monitor-1/"));
}

BOOST_AUTO_TEST_CASE(a_port_in_use_is_a_clear_error) {
  Fleet fleet{bus_a};
  ForwarderOptions options;
  options.endpoints = {bus_b.id, fleet.forwarders[0]->endpoints().publish, "tcp://127.0.0.1:0"};
  options.keyring = fleet.keys.at(bus_b.id);
  const auto second = Forwarder::start(std::move(options));
  BOOST_TEST_REQUIRE(!second.has_value());
  BOOST_TEST((second.error().kind == ErrorKind::conflict));
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // they keep what was freed
BOOST_AUTO_TEST_CASE(a_stalled_subscriber_costs_bounded_memory) {
  Fleet fleet{bus_a};
  const Keyring& own = fleet.keys.at(monitor.id);
  zmq::context_t context;
  zmq::socket_t stalled(context, zmq::socket_type::sub);
  stalled.set(zmq::sockopt::linger, 0);
  stalled.set(zmq::sockopt::rcvhwm, 1);
  stalled.set(zmq::sockopt::curve_serverkey,
              zmq::const_buffer(fleet.keys.at(bus_a.id).curve_public.data(), 32));
  stalled.set(zmq::sockopt::curve_publickey, zmq::const_buffer(own.curve_public.data(), 32));
  stalled.set(zmq::sockopt::curve_secretkey, zmq::const_buffer(own.curve_secret.data(), 32));
  stalled.set(zmq::sockopt::subscribe, "snapshot/");
  stalled.connect(fleet.forwarders[0]->endpoints().subscribe);

  const std::size_t before = resident_bytes();
  auto speaker = fleet.node(fleet.options(optimizer));
  schema::RoutingSnapshot snapshot;
  snapshot.cluster = ClusterName("east"), snapshot.weights.resize(14'000);  // 340 KB
  BOOST_TEST_REQUIRE(eventually([&] {
    static_cast<void>(speaker->publish(snapshot));
    return stalled.get(zmq::sockopt::events) != 0;
  }));
  std::size_t most = 0;
  std::uint64_t said = 0;
  paced(6s, 10ms, [&] {
    said += speaker->publish(snapshot).has_value() ? 1 : 0;
    most = std::max(most, resident_bytes());
  });
  BOOST_TEST_MESSAGE(said << " snapshots of 340 KB to a stalled subscriber: " << (most - before) / 1000000
                          << " MB");
  BOOST_TEST(most - before < 32u << 20);
}
#endif

BOOST_AUTO_TEST_CASE(a_forwarder_process_beats) {
  Fleet fleet{bus_a};
  ForwarderProcess process;
  process.forwarder.endpoints = {bus_b.id, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"};
  process.forwarder.keyring = fleet.keys.at(bus_b.id);
  process.node = fleet.options(bus_b);
  process.beat = 20ms;
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {"beat/"}), inbox.handlers());
  std::string error;
  std::jthread runner([&](std::stop_token stop) { error = error_of(run_forwarder(process, stop)); });
  BOOST_TEST(eventually([&] { return inbox.count("beat/forwarder/bus-b/") >= 2; }));
  runner.request_stop();
  runner.join();
  BOOST_TEST(error == "");
}

BOOST_AUTO_TEST_CASE(after_a_partition_the_newest_arrives_soon_and_nothing_stale) {
  Fleet fleet{bus_a};
  Relay relay(fleet.forwarders[0]->endpoints().subscribe);
  auto options = fleet.options(router, {"snapshot/east/"});
  options.forwarders[0].subscribe = relay.endpoint();
  Inbox inbox;
  auto listener = fleet.node(std::move(options), inbox.handlers());
  auto speaker = fleet.node(fleet.options(optimizer));
  schema::RoutingSnapshot snapshot;
  snapshot.cluster = ClusterName("east");
  const auto newest_is_here = [&] {
    const auto all = inbox.all();
    return !all.empty() && std::get<schema::RoutingSnapshot>(all.back()->message).version == snapshot.version;
  };
  BOOST_TEST_REQUIRE(gets_through(*speaker, inbox, snapshot, "snapshot/east/optimizer-1/"));

  relay.set_partitioned(true);
  paced(4s, 20ms, [&] {
    ++snapshot.version.sequence;
    BOOST_TEST(error_of(speaker->publish(snapshot)) == "");
  });
  const std::size_t before = inbox.count();
  const auto healed = std::chrono::steady_clock::now();
  relay.set_partitioned(false);
  BOOST_TEST(eventually(newest_is_here));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - healed;
  BOOST_TEST_MESSAGE("newest of " << snapshot.version.sequence << " snapshots " << took.count()
                                  << " s after the heal, " << inbox.count() - before << " delivered since");
  BOOST_TEST(took.count() < 5);
  BOOST_TEST(inbox.count() - before <= 3u);
}
