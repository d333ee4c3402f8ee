// Routes that change while requests are open, and what a router's own configuration says of its engines.
#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;
using namespace signalbox::net;

namespace {

struct One : GatewayFixture {
  One() : GatewayFixture(1) {}
  std::string address() const { return engines[0]->address().text(); }
};
bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_new_table_keeps_the_connections_of_engines_that_stay, One) {
  RawClient client = this->client();
  for (int i = 0; i < 3; ++i) {
    client.received.clear();
    client.send(chat());
    engine_hears("\"hi\"").say(json_answer("{\"ok\":1}"));
    BOOST_TEST(client.receives("{\"ok\":1}"));
    adopt(test_policy);
  }
  BOOST_TEST(engines[0]->peers.size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(an_engine_that_leaves_the_table_finishes_what_it_has, One) {
  RawClient client = this->client();
  client.send(chat());
  auto& engine = engine_hears("\"hi\"");
  engine.say(stream_head + chunk("data: {\"a\":1}\n\n"));
  BOOST_TEST(client.receives("{\"a\":1}"));
  gateway->adopt(routes_to(test_policy, {}));
  engine.say(chunk("data: [DONE]\n\n") + "0\r\n\r\n");
  BOOST_TEST(client.receives("[DONE]"));
  client.received.clear();
  client.send(chat());
  BOOST_TEST(client.receives("x-signalbox-reason: no_engine"));
  BOOST_TEST(sees_close(engine));
}

BOOST_FIXTURE_TEST_CASE(an_engine_at_a_new_address_is_called_there, One) {
  ScriptedServer moved(loop);
  gateway->adopt(routes_to(test_policy, {moved.address().text()}));
  RawClient client = this->client();
  client.send(chat());
  BOOST_REQUIRE(moved.hears(0, "\"hi\""));
  moved.peers[0]->say(json_answer("{\"ok\":1}"));
  BOOST_TEST(client.receives("{\"ok\":1}"));
}

BOOST_FIXTURE_TEST_CASE(an_engine_without_an_address_fails_like_one_that_refuses, One) {
  gateway->adopt(routes_to(test_policy, {"no-such-host.invalid:80"}));
  RawClient client = this->client();
  client.send(chat());
  BOOST_TEST(client.receives("x-signalbox-reason: "));
  BOOST_TEST(has(client.received, "HTTP/1.1 50"));
}

BOOST_FIXTURE_TEST_CASE(an_engines_own_key_replaces_the_clients, One) {
  Routes routes = routes_to(test_policy, {address()});
  EngineAccessMap access;
  access[EngineName("e0")].authorization = "Bearer engine-key";
  routes.doors = build_address_book(*routes.view->table, access);
  gateway->adopt(routes);
  RawClient client = this->client();
  client.send(chat("Authorization: Bearer client-key\r\n"));
  auto& engine = engine_hears("\"hi\"");
  BOOST_TEST(has(heard(), "authorization: Bearer engine-key\r\n"));
  BOOST_TEST(!has(heard(), "client-key"));
  engine.say(json_answer("{}"));
  BOOST_TEST(client.receives("{}"));
  BOOST_TEST(!has(client.received, "engine-key"));
}

BOOST_FIXTURE_TEST_CASE(a_decision_can_be_asked_for_without_a_request, One) {
  std::string body = R"({"model":"m","prompt":"x"})";
  const std::size_t size = body.size();
  body.append(64, '\0');
  net::Request request;
  request.head.target = "/v1/completions";
  request.body = std::string_view(body).substr(0, size);
  const auto record = gateway->would_decide(request);
  BOOST_REQUIRE(record.has_value());
  BOOST_TEST(record->engine_name.str() == "e0");
  request.body = std::string_view(body).substr(0, 5);
  BOOST_TEST(gateway->would_decide(request).error().reason == "invalid_json");
  BOOST_TEST(gateway->dispatcher().open() == 0u);
}
