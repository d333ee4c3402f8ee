// The gateway on its own thread, met only through its two hand-over places.
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "actors/cluster_router/gateway/gateway_thread.hpp"
#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;
using namespace signalbox::net;

namespace {

GatewayThreadOptions fast_batches() {
  GatewayThreadOptions options;
  options.listen = *resolve("127.0.0.1", 0);
  options.batch_period = 5ms;
  options.batches_kept = 4;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(routes_go_in_and_batches_come_out) {
  Loop loop;
  ScriptedServer engine(loop);
  GatewayThread thread(fast_batches());
  BOOST_REQUIRE(thread.start().has_value());
  thread.publish(routes_to(test_policy, {engine.address().text()}));
  BOOST_TEST(*thread.ask([](Gateway& gateway) { return gateway.dispatcher().view() != nullptr; }, 10s));
  RawClient client(loop, thread.port());
  client.send(chat());
  BOOST_REQUIRE(engine.hears(0, "\"hi\""));
  engine.peers[0]->say(json_answer("{\"ok\":1}"));
  BOOST_TEST(client.receives("{\"ok\":1}"));
  std::uint64_t offered = 0, succeeded = 0;
  BOOST_TEST(turn_until(loop, [&] {
    while (const auto batch = thread.take_batch()) {
      for (const auto& row : batch->demand) offered += row.offered;
      for (const auto& row : batch->outcomes) succeeded += row.succeeded;
    }
    return succeeded == 1;
  }));
  BOOST_TEST(offered == 1u);
}

BOOST_AUTO_TEST_CASE(a_batch_that_finds_no_place_waits_and_no_number_is_lost) {
  Loop loop;
  GatewayThread thread(fast_batches());
  BOOST_REQUIRE(thread.start().has_value());
  BOOST_TEST(turn_until(loop, [&] { return thread.late_batches() > 2; }));
  std::uint64_t number = 0;
  BOOST_TEST(turn_until(loop, [&] {
    while (const auto batch = thread.take_batch()) BOOST_TEST(batch->number == ++number);
    return number > 10;
  }));
}

BOOST_AUTO_TEST_CASE(views_may_change_under_load) {
  Loop loop;
  ScriptedServer engine(loop);
  const std::string address = engine.address().text();
  const std::array routes{routes_to(test_policy, {address}), routes_to(test_policy, {address, address})};
  GatewayThread thread(fast_batches());
  BOOST_REQUIRE(thread.start().has_value());
  thread.publish(routes[0]);
  std::atomic<bool> stop{false};
  std::thread publisher([&] {
    for (std::size_t i = 0; !stop; ++i) thread.publish(routes[i % 2]), thread.take_batch();
  });
  RawClient client(loop, thread.port());
  for (int i = 0; i < 20; ++i) {
    client.received.clear();
    client.send(chat());
    BOOST_REQUIRE(turn_until(loop, [&] { return answer_one(engine); }));
    BOOST_TEST(client.receives("{\"ok\":1}"));
  }
  stop = true;
  publisher.join();
}

BOOST_AUTO_TEST_CASE(draining_is_told_when_it_is_over) {
  Loop loop;
  GatewayThread thread(fast_batches());
  BOOST_REQUIRE(thread.start().has_value());
  std::promise<void> done;
  auto told = done.get_future();
  thread.drain(1s, [&] { done.set_value(); });
  BOOST_TEST((told.wait_for(10s) == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(a_successor_takes_over_a_shared_port_and_no_connection_is_refused) {
  Loop loop;
  ScriptedServer engine(loop);
  const Routes routes = routes_to(test_policy, {engine.address().text()});
  GatewayThreadOptions options = fast_batches();
  options.share_port = true;
  options.patience = 1h;
  auto first = std::make_unique<GatewayThread>(options);
  BOOST_REQUIRE(first->start().has_value());
  first->publish(routes);
  const auto serves = [](Gateway& gateway) { return gateway.dispatcher().view() != nullptr; };
  BOOST_TEST(*first->ask(serves, 10s));
  options.listen = *resolve("127.0.0.1", first->port());
  GatewayThread second(options);
  BOOST_REQUIRE(second.start().has_value());
  const std::string probe = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";
  const auto ask = [&] {
    RawClient client(loop, first->port());
    client.send(probe);
    return client.receives("\"id\":\"m\"");
  };
  const auto connections = [](GatewayThread& thread) {
    return *thread.ask([](Gateway& gateway) { return gateway.client_connections(); }, 10s);
  };
  RawClient early(loop, first->port());
  BOOST_TEST(turn_until(loop, [&] { return connections(*first) == 1; }),
             "a successor without routes accepts nothing");
  second.publish(routes);
  BOOST_TEST(*second.ask(serves, 10s));
  std::promise<void> done;
  auto told = done.get_future();
  first->drain(10s, [&] { done.set_value(); });
  BOOST_TEST(*first->ask(serves, 10s));  // what is asked after the drain is answered after it
  early.send(probe);
  BOOST_TEST(early.receives("connection: close\r\n"));
  BOOST_TEST(early.receives("\"id\":\"m\""));
  while (told.wait_for(0s) != std::future_status::ready) BOOST_REQUIRE(ask());
  const std::uint16_t port = first->port();
  first.reset();
  RawClient late(loop, port);
  late.send(probe);
  BOOST_TEST(late.receives("\"id\":\"m\""));
}

BOOST_AUTO_TEST_CASE(a_port_that_is_taken_is_an_error_that_names_it) {
  GatewayThread first(fast_batches());
  BOOST_REQUIRE(first.start().has_value());
  GatewayThreadOptions options = fast_batches();
  options.listen = *resolve("127.0.0.1", first.port());
  GatewayThread second(options);
  const auto started = second.start();
  BOOST_REQUIRE(!started.has_value());
  BOOST_TEST(started.error().where == "127.0.0.1:" + std::to_string(first.port()));
}
