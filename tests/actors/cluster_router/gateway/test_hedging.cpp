// A request whose first engine is late goes to a second one, and the client gets one answer.
#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;

namespace {

const std::string hedging_policy = [] {
  std::string text = test_policy;
  const std::string_view before = "attempts 2";
  text.replace(text.find(before), before.size(), "attempts 2 hedge tokens 4096 quantile 50% least 1ms");
  return text;
}();

/// Of a connection that serves no other request: its end is no surprise that is silently made good.
const std::string last_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: "
    "chunked\r\n\r\n";
const std::string done = chunk("data: [DONE]\n\n") + "0\r\n\r\n";

struct Fixture : GatewayFixture {
  Fixture() : GatewayFixture(2, hedging_policy) {}

  /// Enough answers at once that every later request's first byte is late.
  void learn() {
    for (int i = 0; i < 20; ++i) {
      auto warm = client();
      warm.send(chat());
      engine_hears("messages").say(last_head + chunk("data: {}\n\n") + done);
      BOOST_REQUIRE(warm.receives("[DONE]"));
    }
    BOOST_REQUIRE(gateway->counters().hedges == 0u);
  }
  /// A request that both engines have.
  void both_hear() {
    learn();
    asking = std::make_unique<net::RawClient>(client());
    asking->send(chat());
    first = &engine_hears("messages", &first_engine);
    second = &engine_hears("messages", &second_engine);
    BOOST_REQUIRE(first_engine != second_engine);
    BOOST_TEST(gateway->counters().hedges == 1u);
  }
  void answered_by(std::size_t engine) {
    BOOST_TEST(asking->receives("[DONE]"));
    BOOST_TEST(asking->received.find(fmt::format("x-signalbox-engine: e{}\r\n", engine)) != std::string::npos,
               asking->received);
    BOOST_TEST(asking->received.find("x-signalbox-attempts: 2\r\n") != std::string::npos);
    BOOST_TEST(asking->received.find("HTTP/1.1 200 ") == 0u);
    BOOST_TEST(gateway->dispatcher().open() == 0u);
  }

  std::unique_ptr<net::RawClient> asking;
  net::ScriptedServer::Peer *first = nullptr, *second = nullptr;
  std::size_t first_engine = 0, second_engine = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_second_engine_answers_first_and_the_first_is_told_to_stop, Fixture) {
  both_hear();
  second->say(stream_head + chunk("data: {\"a\":1}\n\n"));
  BOOST_TEST(asking->receives("\"a\":1"));
  BOOST_TEST(sees_close(*first));
  second->say(done);
  answered_by(second_engine);
  BOOST_TEST(gateway->counters().hedges_won == 1u);
}

BOOST_FIXTURE_TEST_CASE(the_first_engine_answers_first_and_the_second_is_told_to_stop, Fixture) {
  both_hear();
  second->say(stream_head);  // a head says nothing of the first byte
  first->say(stream_head + chunk("data: {\"a\":1}\n\n") + done);
  answered_by(first_engine);
  BOOST_TEST(sees_close(*second));
  BOOST_TEST(gateway->counters().hedges_won == 0u);
}

BOOST_FIXTURE_TEST_CASE(one_of_two_engines_fails_and_the_other_goes_on, Fixture) {
  struct Row {
    const char* name;
    bool first_fails;
    std::function<void(net::ScriptedServer::Peer&)> failure;
  };
  const std::vector<Row> rows{
      {"the first is reset", true, [](auto& peer) { peer.reset(); }},
      {"the second is reset", false, [](auto& peer) { peer.reset(); }},
      {"the first says 503", true, [](auto& peer) { peer.say(json_answer("{}", "503 Busy")); }},
      {"the second says 503", false, [](auto& peer) { peer.say(json_answer("{}", "503 Busy")); }},
      {"the second says 400", false, [](auto& peer) { peer.say(json_answer("{}", "400 Bad")); }}};
  learn();
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.name) {
      asking = std::make_unique<net::RawClient>(client());
      asking->send(chat());
      first = &engine_hears("messages", &first_engine);
      second = &engine_hears("messages", &second_engine);
      row.failure(row.first_fails ? *first : *second);
      loop.turn(1ms);
      (row.first_fails ? second : first)->say(last_head + chunk("data: {}\n\n") + done);
      answered_by(row.first_fails ? second_engine : first_engine);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_request_that_is_wrong_is_told_at_once, Fixture) {
  both_hear();
  first->say(json_answer(R"({"error":{"message":"no"}})", "400 Bad Request"));
  BOOST_TEST(asking->receives("HTTP/1.1 400 "));
  BOOST_TEST(sees_close(*second));
}

BOOST_FIXTURE_TEST_CASE(both_fail_and_the_client_is_told, Fixture) {
  both_hear();
  first->reset();
  loop.turn(1ms);
  second->reset();
  BOOST_TEST(asking->receives("HTTP/1.1 502 "));
  BOOST_TEST(asking->receives("retries_exhausted"));
}

BOOST_FIXTURE_TEST_CASE(a_client_that_leaves_frees_both_engines, Fixture) {
  both_hear();
  asking->leave();
  BOOST_TEST(sees_close(*first));
  BOOST_TEST(sees_close(*second));
  BOOST_TEST(gateway->dispatcher().open() == 0u);
}
