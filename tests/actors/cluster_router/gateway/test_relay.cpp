// What passes through: requests, answers, streams, heads.
#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;
using namespace signalbox::net;

namespace {
struct Two : GatewayFixture {};
bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
}  // namespace

BOOST_FIXTURE_TEST_CASE(a_stream_passes_event_by_event, Two) {
  RawClient client = this->client();
  client.send(chat());
  auto& engine = engine_hears("\"hi\"");
  engine.say(stream_head + chunk("data: {\"a\":1}\n\n"));
  BOOST_TEST(client.receives("data: {\"a\":1}\n\n"));
  BOOST_TEST(!has(client.received, "b\":2"));
  engine.say(chunk("data: {\"b\":2}\n\n"));
  BOOST_TEST(client.receives("data: {\"b\":2}\n\n"));
  engine.say(chunk("data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n") +
             "0\r\n\r\n");
  BOOST_TEST(client.receives("[DONE]\n\n\r\n0\r\n\r\n"));
  BOOST_TEST(gateway->counters().answers_completed == 1u);
  BOOST_TEST(gateway->counters().events == 4u);
}

BOOST_FIXTURE_TEST_CASE(answers_carry_the_decision_and_keep_their_own_fields, Two) {
  RawClient client = this->client();
  client.send(chat("X-Request-Id: my-id\r\n"));
  std::size_t which = 9;
  auto& engine = engine_hears("\"hi\"", &which);
  engine.say(json_answer("{}", "200 OK",
                         "X-Custom: kept\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive, "
                         "X-Private\r\nX-Private: 1\r\nX-Signalbox-Engine: forged\r\n"));
  BOOST_TEST(client.receives("\r\n\r\n{}"));
  for (const char* line :
       {"x-request-id: my-id\r\n", "x-signalbox-decision: ", "x-signalbox-snapshot: none\r\n",
        "x-signalbox-attempts: 1\r\n", "X-Custom: kept\r\n", "content-length: 2\r\n"})
    BOOST_TEST(has(client.received, line), line);
  BOOST_TEST(has(client.received, "x-signalbox-engine: e" + std::to_string(which) + "\r\n"));
  for (const char* line : {"Keep-Alive", "X-Private", "forged"})
    BOOST_TEST(!has(client.received, line), line);
}

BOOST_FIXTURE_TEST_CASE(engines_get_the_request_without_what_is_not_theirs, Two) {
  RawClient client = this->client();
  client.send(
      chat("Connection: keep-alive, x-hop\r\nX-Hop: 1\r\nTE: trailers\r\nExpect: "
           "100-continue\r\nX-Signalbox-Criticality: standard\r\n"
           "Authorization: Bearer k\r\nx-trace: 00-1-2-01\r\n"));
  auto& engine = engine_hears("\"hi\"");
  for (const char* line :
       {"POST /v1/chat/completions HTTP/1.1\r\n", "host: 127.0.0.1:", "Authorization: Bearer k\r\n",
        "x-trace: 00-1-2-01\r\n", "Content-Type: application/json\r\n", "x-request-id: "})
    BOOST_TEST(has(heard(), line), line);
  for (const char* line : {"X-Hop", "TE:", "Expect", "Signalbox", "Host: router"})
    BOOST_TEST(!has(heard(), line), line);
  engine.say(json_answer("{}"));
  BOOST_TEST(client.receives("{}"));
}

BOOST_FIXTURE_TEST_CASE(a_chunked_request_is_forwarded_with_its_length, Two) {
  RawClient client = this->client();
  const std::string body = R"({"model":"m","input":"x"})";
  client.send("POST /v1/anything HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
              chunk(body.substr(0, 5)) + chunk(body.substr(5)) + "0\r\n\r\n");
  auto& engine = engine_hears(body);
  BOOST_TEST(has(heard(), "content-length: 25\r\n"));
  engine.say(json_answer("{\"ok\":1}"));
  BOOST_TEST(client.receives("{\"ok\":1}"));
}

BOOST_FIXTURE_TEST_CASE(both_connections_are_used_again, Two) {
  RawClient client = this->client();
  for (int i = 0; i < 6; ++i) {
    client.received.clear();
    client.send(chat("", R"({"model":"m","prompt":"q"})", "/v1/completions"));
    engine_hears("\"q\"").say(json_answer("{\"n\":1}"));
    BOOST_TEST(client.receives("{\"n\":1}"));
  }
  BOOST_TEST(engines[0]->peers.size() <= 1u);
  BOOST_TEST(engines[1]->peers.size() <= 1u);
  BOOST_TEST(gateway->counters().answers_completed == 6u);
}

BOOST_FIXTURE_TEST_CASE(large_bodies_pass_both_ways_and_a_slow_client_holds_the_engine_up, Two) {
  RawClient client = this->client();
  const std::string prompt(8'000'000, 'p');
  client.send(chat("", R"({"model":"m","prompt":")" + prompt + "\"}", "/v1/completions"));
  auto& engine = engine_hears("pp\"}");
  const std::string answer(20'000'000, 'a');
  std::string wire = json_answer(answer);
  BOOST_TEST(turn_until(
      loop,
      [&] {
        const IoResult put = engine.stream->write(wire);
        if (put.state == Io::done) wire.erase(0, put.bytes);
        client.poll();
        return client.received.size() > answer.size();
      },
      30s));
  BOOST_TEST(client.received.size() < answer.size() + 1000);
  BOOST_TEST(has(std::string_view(client.received).substr(client.received.size() - 10), "aaaaaaaaaa"));
}

BOOST_FIXTURE_TEST_CASE(errors_of_engines_arrive_in_the_shape_of_openai, Two) {
  RawClient client = this->client();
  client.send(chat());
  engine_hears("\"hi\"").say(
      json_answer(R"({"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}})",
                  "400 Bad Request"));
  BOOST_TEST(client.receives(
      R"({"error":{"message":"too long","type":"exceed_context_size_error","param":null,"code":null}})"));
  BOOST_TEST(has(client.received, "HTTP/1.1 400 Bad Request\r\n"));
  BOOST_TEST(has(client.received, "x-signalbox-engine: e"));
}

BOOST_FIXTURE_TEST_CASE(requests_that_cannot_be_routed_say_why, Two) {
  struct Row {
    std::string request;
    const char* status;
    const char* text;
  };
  for (const Row& row :
       {Row{chat("", "{nonsense"), "400", "\"code\":\"invalid_json\""},
        Row{chat("", "{}"), "400", "you must provide a model parameter"},
        Row{chat("", R"({"model":"other"})"), "404", "\"code\":\"model_not_found\""},
        Row{chat("", R"({"model":"lonely"})"), "503", "x-signalbox-reason: no_engine"},
        Row{chat("X-Signalbox-Criticality: urgent\r\n"), "400", "sheddable, standard or critical"},
        Row{chat("X-Signalbox-Deadline-Ms: soon\r\n"), "400", "positive whole number"},
        Row{chat("Content-Encoding: gzip\r\n"), "400", "the body is not gzip"},
        Row{chat("Content-Encoding: br\r\n"), "415", "accept-encoding: gzip, deflate\r\n"},
        Row{"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", "404", "unknown_path"},
        Row{"PUT /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "405", "allow: GET, HEAD, POST"},
        Row{"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "200", R"("id":"lonely")"},
        Row{"GET /v1/models/m HTTP/1.1\r\nHost: x\r\n\r\n", "200", R"({"id":"m","object":"model")"},
        Row{"GET /v1/models/zz HTTP/1.1\r\nHost: x\r\n\r\n", "404", "model_not_found"}}) {
    RawClient client = this->client();
    client.send(row.request);
    BOOST_TEST(client.receives(row.text), row.text << " in " << client.received);
    BOOST_TEST(client.received.substr(9, 3) == row.status, row.text);
  }
}

BOOST_AUTO_TEST_CASE(without_a_view_requests_are_refused_with_a_reason) {
  Loop loop;
  Gateway gateway(loop, {});
  BOOST_REQUIRE(gateway.listen(*resolve("127.0.0.1", 0)).has_value());
  RawClient client(loop, gateway.port());
  client.send(chat());
  BOOST_TEST(client.receives("x-signalbox-reason: no_snapshot"));
  BOOST_TEST(has(client.received, "HTTP/1.1 503"));
  BOOST_TEST(has(client.received, "retry-after: "));
}
