// What goes wrong: engines that die in each phase, clients that leave in each phase, stale connections, draining.
#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;
using namespace signalbox::net;

namespace {
struct Two : GatewayFixture {};
struct One : GatewayFixture {
  One() : GatewayFixture(1) {}
};
bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
}  // namespace

BOOST_FIXTURE_TEST_CASE(an_engine_that_fails_before_its_first_byte_is_replaced, Two) {
  struct Row {
    const char* name;
    std::string says;
    bool resets;
  };
  for (const Row& row :
       {Row{"dies before the head", "", false}, Row{"resets before the head", "", true},
        Row{"dies inside the head", "HTTP/1.1 200 OK\r\nCont", false},
        Row{"dies after the head", stream_head, false}, Row{"resets after the head", stream_head, true},
        Row{"answers 503", json_answer("{}", "503 Service Unavailable"), false},
        Row{"is not HTTP", "HELLO\r\n\r\n", false}}) {
    RawClient client = this->client();
    client.send(chat("Connection: close\r\n"));
    std::size_t first = 9, second = 9;
    auto& failing = engine_hears("\"hi\"", &first);
    failing.say(row.says);
    row.resets ? failing.reset() : failing.hang_up();
    auto& engine = engine_hears("\"hi\"", &second);
    BOOST_TEST(first != second, row.name);
    engine.say(json_answer("{\"ok\":1}", "200 OK",
                           "Connection: close\r\n"));  // no pooled connection for the next row
    BOOST_TEST(client.receives("{\"ok\":1}"), row.name);
    BOOST_TEST(has(client.received, "x-signalbox-attempts: 2\r\n"), row.name);
    BOOST_TEST(client.received.find("HTTP/1.1") == client.received.rfind("HTTP/1.1"), row.name);
  }
}

BOOST_FIXTURE_TEST_CASE(a_refused_connection_is_replaced, Two) {
  engines[0]->refuse();
  for (int i = 0; i < 4; ++i) {
    RawClient client = this->client();
    client.send(chat());
    engine_hears("\"hi\"").say(json_answer("{\"ok\":1}"));
    BOOST_TEST(client.receives("{\"ok\":1}"));
    BOOST_TEST(has(client.received, "x-signalbox-engine: e1\r\n"));
  }
}

BOOST_FIXTURE_TEST_CASE(when_every_engine_is_dead_the_answer_comes_at_once_with_a_reason, Two) {
  engines[0]->refuse();
  engines[1]->refuse();
  RawClient client = this->client();
  client.send(chat());
  BOOST_TEST(client.receives("x-signalbox-reason: ", 1s));
  BOOST_TEST(has(client.received, "HTTP/1.1 50"));
  BOOST_TEST(has(client.received, "x-signalbox-attempts: 2\r\n"));
}

BOOST_FIXTURE_TEST_CASE(a_clients_error_is_not_retried, Two) {
  RawClient client = this->client();
  client.send(chat());
  engine_hears("\"hi\"").say(json_answer("{\"detail\":\"bad\"}", "422 Unprocessable Entity"));
  BOOST_TEST(client.receives("\"message\":\"bad\""));
  BOOST_TEST(gateway->counters().attempts == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_stream_whose_engine_dies_ends_with_an_error_event_and_no_done, Two) {
  struct Row {
    const char* name;
    std::string last;
    bool resets;
  };
  for (const Row& row : {Row{"cut between chunks", chunk("data: {\"a\":1}\n\n"), false},
                         Row{"cut inside an event", chunk("data: {\"a\":1"), false},
                         Row{"reset", chunk("data: {\"a\":1}\n\n"), true},
                         Row{"ended without [DONE]", chunk("data: {\"a\":1}\n\n") + "0\r\n\r\n", false},
                         Row{"bad chunk", chunk("data: {\"a\":1}\n\n") + "zz\r\n", false}}) {
    RawClient client = this->client();
    client.send(chat());
    auto& engine = engine_hears("\"hi\"");
    engine.say(stream_head + row.last);
    BOOST_TEST(client.receives("{\"a\":1"));
    row.resets ? engine.reset() : engine.hang_up();
    BOOST_TEST(client.receives("\r\n0\r\n\r\n"), row.name);
    BOOST_TEST(has(client.received, "\n\ndata: {\"error\":{\"message\":") == !has(row.last, "\n\n"),
               row.name);
    BOOST_TEST(has(client.received, "data: {\"error\":{\"message\":\"the engine"), row.name);
    BOOST_TEST(!has(client.received, "[DONE]"), row.name);
  }
  BOOST_TEST(gateway->counters().streams_broken == 5u);
}

BOOST_FIXTURE_TEST_CASE(a_whole_answer_that_is_cut_breaks_the_connection, Two) {
  for (const std::string head :
       {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
        "chunked\r\n\r\n4\r\nhalf\r\n"}) {
    RawClient client = this->client();
    client.send(chat());
    auto& engine = engine_hears("\"hi\"");
    engine.say(head);
    BOOST_TEST(client.receives("half"));
    engine.hang_up();
    BOOST_TEST(client.sees_end());
    BOOST_TEST(client.reset);
  }
}

BOOST_FIXTURE_TEST_CASE(an_engine_that_closes_its_kept_connection_costs_the_client_nothing, One) {
  RawClient client = this->client();
  client.send(chat());
  engine_hears("\"hi\"").say(json_answer("{\"n\":1}"));
  BOOST_TEST(client.receives("{\"n\":1}"));
  client.received.clear();
  // The request is on its way before the gateway can see the hang-up.
  client.stream().write(chat());
  engines[0]->peers[0]->hang_up();
  engine_hears("\"hi\"").say(json_answer("{\"n\":2}"));
  BOOST_TEST(client.receives("{\"n\":2}"));
  BOOST_TEST(has(client.received, "x-signalbox-attempts: 1\r\n"));
}

BOOST_FIXTURE_TEST_CASE(a_client_that_leaves_is_noticed_in_each_phase_and_its_engine_told, Two) {
  struct Row {
    const char* name;
    std::string says;
    const char* sees;
  };
  for (const Row& row :
       {Row{"before the head", "", ""}, Row{"after the head", stream_head, ""},
        Row{"streaming", stream_head + chunk("data: {\"a\":1}\n\n"), "{\"a\":1}"},
        Row{"inside a whole answer", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "half"}}) {
    RawClient client = this->client();
    client.send(chat());
    auto& engine = engine_hears("\"hi\"");
    engine.say(row.says);
    BOOST_TEST(client.receives(row.sees));
    client.leave();
    BOOST_TEST(sees_close(engine), row.name);
    BOOST_TEST(gateway->dispatcher().open() == 0u, row.name);
    engine.hang_up();
  }
  BOOST_TEST(gateway->counters().clients_left_waiting == 2u);
  BOOST_TEST(gateway->counters().clients_left_streaming == 2u);
}

BOOST_FIXTURE_TEST_CASE(requests_over_the_limit_wait_and_go_when_there_is_room, One) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<RawClient>(loop, gateway->port()));
    clients.back()->send(chat());
  }
  BOOST_TEST(turn_until(loop, [&] { return gateway->dispatcher().waiting() == 2; }));
  BOOST_TEST(gateway->counters().attempts == 4u);
  clients[5]->leave();
  BOOST_TEST(turn_until(loop, [&] { return gateway->dispatcher().waiting() == 1; }));
  for (int i = 0; i < 5; ++i) engine_hears("\"hi\"").say(json_answer("{\"ok\":1}"));
  for (int i = 0; i < 5; ++i) BOOST_TEST(clients[static_cast<std::size_t>(i)]->receives("{\"ok\":1}"));
}

BOOST_FIXTURE_TEST_CASE(every_endpoint_counts_towards_the_same_limit, One) {
  const std::vector<std::string> paths{"/v1/chat/completions", "/v1/completions", "/v1/embeddings",
                                       "/v1/whatever", "/v1/rerank"};
  std::vector<RawClient> clients;
  for (const std::string& path : paths) {
    clients.push_back(client());
    clients.back().send(chat("", R"({"model":"m","prompt":"p"})", path));
  }
  ScriptedServer::Peer* first = nullptr;
  for (int i = 0; i < 4; ++i) first = &engine_hears("\"p\"");
  BOOST_TEST(gateway->dispatcher().waiting() == 1u);
  first->say(json_answer("{\"ok\":1}"));
  engine_hears("\"p\"").say(json_answer("{\"ok\":1}"));
  BOOST_TEST(gateway->dispatcher().waiting() == 0u);
  for (RawClient& each : clients) each.leave();
  BOOST_TEST(turn_until(loop, [&] { return gateway->dispatcher().open() == 0; }));
}

BOOST_AUTO_TEST_CASE(limits_of_time_are_kept) {
  const auto with = [](std::string timeouts) {
    std::string text = test_policy;
    const std::size_t at = text.find("timeouts ");
    return text.replace(at, text.find('\n', at) - at, timeouts);
  };
  {
    GatewayFixture f(2, with("timeouts connect 1s first_byte 100ms gap 5s total 60s"));
    RawClient client = f.client();
    client.send(chat());
    std::size_t first = 9, second = 9;
    f.engine_hears("\"hi\"", &first);
    auto& engine = f.engine_hears("\"hi\"", &second);
    BOOST_TEST(first != second);
    engine.say(json_answer("{\"ok\":1}"));
    BOOST_TEST(client.receives("{\"ok\":1}"));
  }
  {
    GatewayFixture f(1, with("timeouts connect 1s first_byte 5s gap 100ms total 60s"));
    RawClient client = f.client();
    client.send(chat());
    f.engine_hears("\"hi\"").say(stream_head + chunk("data: {\"a\":1}\n\n"));
    BOOST_TEST(client.receives("gap_timeout"));
  }
  {
    GatewayFixture f(1);
    RawClient client = f.client();
    client.send(chat("X-Signalbox-Deadline-Ms: 50\r\n"));
    f.engine_hears("\"hi\"");
    BOOST_TEST(client.receives("HTTP/1.1 504"));
  }
}

BOOST_FIXTURE_TEST_CASE(draining_lets_streams_finish_and_then_ends_them_in_words, Two) {
  RawClient finishing = client(), endless = client(), silent = client();
  finishing.send(chat("", R"({"model":"m","prompt":"one"})"));
  auto& first = engine_hears("one");
  endless.send(chat("", R"({"model":"m","prompt":"two"})"));
  auto& second = engine_hears("two");
  silent.send(chat("", R"({"model":"m","prompt":"three"})"));
  engine_hears("three");
  second.say(stream_head + chunk("data: {\"a\":1}\n\n"));
  BOOST_TEST(endless.receives("{\"a\":1}"));
  bool drained = false;
  gateway->drain(100ms, [&] { drained = true; });
  first.say(json_answer("{\"ok\":1}"));
  BOOST_TEST(finishing.sees_end());
  BOOST_TEST(has(finishing.received, "{\"ok\":1}"));
  BOOST_TEST(has(finishing.received, "connection: close\r\n"));
  BOOST_TEST(!drained);
  BOOST_TEST(endless.sees_end());
  BOOST_TEST(has(endless.received, "\"code\":\"draining\""));
  BOOST_TEST(!has(endless.received, "[DONE]"));
  BOOST_TEST(silent.sees_end());
  BOOST_TEST(has(silent.received, "HTTP/1.1 503"));
  BOOST_TEST(turn_until(loop, [&] { return drained; }));
}
