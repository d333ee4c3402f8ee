// Several event loops behind one port.
#include <array>
#include <future>
#include <numeric>
#include <set>

#include "actors/cluster_router/gateway/gateways.hpp"
#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;
using namespace signalbox::net;

namespace {

constexpr std::uint32_t loops = 4;

GatewayThreadOptions shared_port() {
  GatewayThreadOptions options;
  options.listen = *resolve("127.0.0.1", 0);
  options.share_port = true;
  options.batch_period = 5ms;
  options.gateway.dispatcher.cluster = ClusterName("c1");
  options.gateway.dispatcher.router = ProcessName("r1");
  return options;
}

struct Several {
  explicit Several(const GatewayThreadOptions& options = shared_port()) : gateways(options, loops) {
    BOOST_REQUIRE(gateways.start().has_value());
    gateways.publish(routes_to(test_policy, {engine.address().text()}));
    // What is asked after the routes is answered after them: the port is open.
    BOOST_TEST(
        gateways.ask_all([](Gateway& g) { return g.dispatcher().view() != nullptr; }, 10s).has_value());
  }
  std::vector<std::size_t> connections() {
    return *gateways.ask_all([](Gateway& gateway) { return gateway.client_connections(); }, 10s);
  }
  std::vector<std::unique_ptr<RawClient>> clients(std::size_t count) {
    std::vector<std::unique_ptr<RawClient>> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(std::make_unique<RawClient>(loop, gateways.port()));
    BOOST_TEST(turn_until(loop, [&] {
      const auto now = connections();
      return std::accumulate(now.begin(), now.end(), std::size_t{0}) == count;
    }));
    return out;
  }
  /// Requests that the engine has and did not answer, by connection.
  std::size_t unanswered() {
    engine.poll();
    std::size_t out = 0;
    for (const auto& peer : engine.peers) out += peer->received.find("\"hi\"") != std::string::npos ? 1 : 0;
    return out;
  }

  Loop loop;
  ScriptedServer engine{loop};
  Gateways gateways;
};

}  // namespace

BOOST_AUTO_TEST_CASE(connections_are_spread_evenly) {
  Several several;
  const auto clients = several.clients(20);
  for (const std::size_t each : several.connections()) BOOST_TEST(each == 20u / loops);
}

BOOST_AUTO_TEST_CASE(a_limit_admits_as_many_as_with_one_loop_and_places_go_to_whoever_waits) {
  Several several;
  auto clients = several.clients(8);
  for (auto& client : clients) client->send(chat());
  BOOST_TEST(turn_until(several.loop, [&] {
    const auto waiting =
        several.gateways.ask_all([](Gateway& gateway) { return gateway.dispatcher().waiting(); }, 10s);
    return std::accumulate(waiting->begin(), waiting->end(), std::size_t{0}) == 4;
  }));
  BOOST_TEST(turn_until(several.loop, [&] { return several.unanswered() == 4; }));
  for (int answered = 0; answered < 8; ++answered) {
    const std::size_t expected = std::min<std::size_t>(4, static_cast<std::size_t>(8 - answered));
    BOOST_TEST(turn_until(several.loop, [&] { return several.unanswered() == expected; }));
    BOOST_REQUIRE(answer_one(several.engine));
  }
  for (auto& client : clients) BOOST_TEST(client->receives("{\"ok\":1}"));
}

BOOST_AUTO_TEST_CASE(each_loop_counts_and_numbers_what_it_served) {
  Several several;
  auto clients = several.clients(8);
  std::set<std::string> decisions;
  for (auto& client : clients) {
    client->send(chat());
    BOOST_REQUIRE(turn_until(several.loop, [&] { return several.unanswered() == 1; }));
    BOOST_REQUIRE(answer_one(several.engine));
    BOOST_REQUIRE(client->receives("{\"ok\":1}"));
    const std::size_t from = client->received.find("x-signalbox-decision: ");
    const std::string text =
        client->received.substr(from + 22, client->received.find("\r\n", from) - from - 22);
    decisions.insert(text);
    const auto id = routing::parse_decision_id(text);
    BOOST_REQUIRE(id.has_value());
    const auto record = several.gateways.ask(
        static_cast<std::uint32_t>(id->count % loops),
        [&](Gateway& gateway) { return gateway.dispatcher().record(*id, Instant{}); }, 10s);
    BOOST_TEST((record.has_value() && record->has_value()));
  }
  BOOST_TEST(decisions.size() == 8u);
  std::array<std::uint64_t, loops> offered{};
  BOOST_TEST(turn_until(several.loop, [&] {
    while (const auto batch = several.gateways.take_batch())
      for (const auto& row : batch->demand) offered[batch->loop] += row.offered;
    return std::accumulate(offered.begin(), offered.end(), std::uint64_t{0}) == 8;
  }));
  for (const std::uint64_t each : offered) BOOST_TEST(each == 2u);
}

BOOST_AUTO_TEST_CASE(draining_ends_on_all_loops_and_a_successor_takes_over) {
  Several first;
  GatewayThreadOptions options = shared_port();
  options.listen = *resolve("127.0.0.1", first.gateways.port());
  options.patience = 1h;
  Gateways second(options, loops);
  BOOST_REQUIRE(second.start().has_value());
  auto early = first.clients(8);
  second.publish(routes_to(test_policy, {first.engine.address().text()}));
  BOOST_TEST(second.ask_all([](Gateway& g) { return g.dispatcher().view() != nullptr; }, 10s).has_value());
  std::promise<void> done;
  auto told = done.get_future();
  first.gateways.drain(10s, [&] { done.set_value(); });
  BOOST_TEST(first.gateways.ask_all([](Gateway&) { return true; }, 10s).has_value());
  BOOST_TEST(first.gateways.ask_all([](Gateway&) { return true; }, 10s).has_value());
  const std::string probe = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";
  for (auto& client : early) {
    client->send(probe);
    BOOST_TEST(client->receives("\"id\":\"m\""));
    BOOST_TEST(client->received.find("connection: close\r\n") != std::string::npos);
  }
  while (told.wait_for(0s) != std::future_status::ready) {
    RawClient late(first.loop, first.gateways.port());
    late.send(probe);
    BOOST_REQUIRE(late.receives("\"id\":\"m\""));
  }
}

BOOST_AUTO_TEST_CASE(one_loop_for_each_two_cores) {
  const std::array<std::array<std::uint32_t, 2>, 6> rows{{{0, 1}, {1, 1}, {2, 1}, {4, 2}, {9, 4}, {256, 16}}};
  for (const auto& [cores, expected] : rows) BOOST_TEST(loops_for(cores) == expected);
}
