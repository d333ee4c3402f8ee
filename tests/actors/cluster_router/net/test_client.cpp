#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/net/client.hpp"
#include "tests/actors/cluster_router/net/scripted_server.hpp"

using namespace signalbox;
using namespace signalbox::net;

namespace {

struct Record final : CallObserver {
  void on_answer(const http::ResponseHead& head) override { log += std::to_string(head.status) + " "; }
  void on_body(std::string_view bytes) override {
    body += bytes;
    if (stop_after_body) call.reset();
  }
  void on_end() override { log += "end", over = true; }
  void on_fault(CallFault fault) override { log += to_string(fault), over = true; }

  std::unique_ptr<Call> call;
  std::string log, body;
  bool over = false;
  bool stop_after_body = false;
};

const std::string post = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n";

struct Fixture {
  Loop loop;
  ScriptedServer server{loop};
  Upstream upstream{loop, server.address(), {}};
  CallLimits limits;

  void start(Record& record) { record.call = upstream.start(post, "body", limits, record); }
  bool finished(const Record& record) {
    return turn_until(loop, [&] { return record.over; });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_connection_is_used_again_after_each_framing, Fixture) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"}) {
    Record record;
    start(record);
    BOOST_REQUIRE(server.hears(0, "body"));
    server.peers[0]->received.clear();
    server.peers[0]->say(answer);
    BOOST_TEST(finished(record));
    BOOST_TEST(record.log == "200 end");
    BOOST_TEST(record.body == "hi");
    BOOST_TEST(upstream.idle() == 1u);
  }
  BOOST_TEST(server.peers.size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(an_answer_may_arrive_byte_by_byte, Fixture) {
  Record record;
  start(record);
  BOOST_REQUIRE(server.hears(0, "body"));
  for (const char c : std::string_view("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 "
                                       "OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")) {
    server.peers[0]->say({&c, 1});
    loop.turn(1ms);
  }
  BOOST_TEST(finished(record));
  BOOST_TEST(record.log == "200 end");
  BOOST_TEST(record.body == "hi");
}

BOOST_FIXTURE_TEST_CASE(a_body_until_close_ends_with_the_connection_and_a_reset_truncates_it, Fixture) {
  Record whole, cut;
  start(whole);
  BOOST_REQUIRE(server.hears(0, "body"));
  server.peers[0]->say("HTTP/1.0 200 OK\r\n\r\nall of it");
  server.peers[0]->hang_up();
  BOOST_TEST(finished(whole));
  BOOST_TEST(whole.log == "200 end");
  BOOST_TEST(whole.body == "all of it");
  start(cut);
  BOOST_REQUIRE(server.hears(1, "body"));
  server.peers[1]->say("HTTP/1.0 200 OK\r\n\r\nhalf");
  BOOST_TEST(turn_until(loop, [&] { return cut.body == "half"; }));
  server.peers[1]->reset();
  BOOST_TEST(finished(cut));
  BOOST_TEST(cut.log == "200 truncated");
}

BOOST_FIXTURE_TEST_CASE(a_server_that_closes_a_kept_connection_is_called_again_in_silence, Fixture) {
  Record first, second;
  start(first);
  BOOST_REQUIRE(server.hears(0, "body"));
  server.peers[0]->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  BOOST_REQUIRE(finished(first));
  start(second);  // the hang-up is on its way, but the pool has not seen it
  server.peers[0]->hang_up();
  BOOST_REQUIRE(server.hears(1, "body"));
  server.peers[1]->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  BOOST_TEST(finished(second));
  BOOST_TEST(second.log == "200 end");
  BOOST_TEST(second.call->restarted());
}

BOOST_FIXTURE_TEST_CASE(an_idle_connection_that_its_server_ends_leaves_the_pool, Fixture) {
  Record record;
  start(record);
  BOOST_REQUIRE(server.hears(0, "body"));
  server.peers[0]->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  BOOST_REQUIRE(finished(record));
  server.peers[0]->hang_up();
  BOOST_TEST(turn_until(loop, [&] { return upstream.idle() == 0; }));
}

BOOST_FIXTURE_TEST_CASE(faults_are_told_by_name, Fixture) {
  struct Row {
    const char* say;
    bool hang_up;
    const char* log;
  };
  std::size_t peer = 0;
  for (const Row row :
       {Row{"", true, "reset_before_answer"}, Row{"HTTP/1.1 200 OK\r\nConte", true, "reset_before_answer"},
        Row{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true, "200 truncated"},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", true, "200 truncated"},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n", false, "200 bad_answer"},
        Row{"SSH-2.0-OpenSSH\r\n\r\n", false, "bad_answer"},
        Row{"HTTP/1.1 101 Switching Protocols\r\n\r\n", false, "bad_answer"}}) {
    Record record;
    start(record);
    BOOST_REQUIRE(server.hears(peer, "body"));
    server.peers[peer]->say(row.say);
    if (row.hang_up) server.peers[peer]->hang_up();
    BOOST_TEST(finished(record));
    BOOST_TEST(record.log == row.log);
    BOOST_TEST((row.hang_up || server.sees_close(peer)));
    ++peer;
  }
}

BOOST_FIXTURE_TEST_CASE(waits_end_by_the_limit_that_applies, Fixture) {
  limits = {.connect = 1s, .first_byte = 20ms, .gap = 20ms, .total = 1h};
  Record silent, stuck, slow;
  start(silent);
  BOOST_TEST(finished(silent));
  BOOST_TEST(silent.log == "first_byte_timeout");
  start(stuck);
  BOOST_REQUIRE(server.hears(1, "body"));
  server.peers[1]->say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  BOOST_TEST(finished(stuck));
  BOOST_TEST(stuck.log == "200 gap_timeout");
  limits = {.connect = 1s, .first_byte = 1s, .gap = 1s, .total = 20ms};
  start(slow);
  BOOST_TEST(finished(slow));
  BOOST_TEST(slow.log == "total_timeout");
}

BOOST_FIXTURE_TEST_CASE(a_refused_connection_is_a_fault, Fixture) {
  server.refuse();
  Record record;
  start(record);
  BOOST_TEST(finished(record));
  BOOST_TEST(record.log == "connect_failed");
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_call_closes_its_connection_in_each_phase, Fixture) {
  Record waiting, streaming;
  start(waiting);
  BOOST_REQUIRE(server.hears(0, "body"));
  waiting.call.reset();
  BOOST_TEST(server.sees_close(0));
  streaming.stop_after_body = true;
  start(streaming);
  BOOST_REQUIRE(server.hears(1, "body"));
  server.peers[1]->say(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n2\r\nho\r\n0\r\n\r\n");
  BOOST_TEST(server.sees_close(1));
  BOOST_TEST(streaming.body == "hiho", "what arrives together is told together");
  BOOST_TEST(!streaming.over);
}

BOOST_FIXTURE_TEST_CASE(a_paused_call_takes_no_more_and_goes_on_when_resumed, Fixture) {
  Record record;
  start(record);
  BOOST_REQUIRE(server.hears(0, "body"));
  server.peers[0]->say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
  BOOST_TEST(turn_until(loop, [&] { return record.body == "half"; }));
  record.call->pause();
  server.peers[0]->say("rest");
  for (int i = 0; i < 5; ++i) loop.turn(1ms);
  BOOST_TEST(record.body == "half");
  record.call->resume();
  BOOST_TEST(finished(record));
  BOOST_TEST(record.body == "halfrest");
}

BOOST_AUTO_TEST_CASE(the_pool_keeps_no_more_than_its_bound_and_forgets_old_ones) {
  Loop loop;
  ScriptedServer server(loop);
  PoolSettings settings;
  settings.max_idle = 1;
  settings.idle_timeout = 20ms;
  Upstream upstream(loop, server.address(), settings);
  Record first, second;
  first.call = upstream.start(post, "body", {}, first);
  second.call = upstream.start(post, "body", {}, second);
  for (const std::size_t i : {0, 1}) {
    BOOST_REQUIRE(server.hears(i, "body"));
    server.peers[i]->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  }
  BOOST_TEST(turn_until(loop, [&] { return first.over && second.over; }));
  BOOST_TEST(upstream.idle() == 1u);
  BOOST_TEST(turn_until(loop, [&] { return upstream.idle() == 0; }));
}
