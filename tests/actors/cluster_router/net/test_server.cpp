#include <boost/test/unit_test.hpp>
#include <thread>

#include "actors/cluster_router/net/endpoints.hpp"
#include "actors/cluster_router/net/server.hpp"
#include "tests/actors/cluster_router/net/raw_client.hpp"

using namespace signalbox;
using namespace signalbox::net;

namespace {

/// Echoes bodies; "/hold" keeps its writer for the test, "/drop" loses it.
struct Echo final : HttpHandler, ResponseObserver {
  void on_request(ResponseWriterPtr writer) override {
    const Request& request = writer->request();
    targets += std::string(request.head.method) + " " + std::string(request.head.target) + ";";
    if (request.head.path() == "/drop") return;
    if (request.head.path() == "/hold") {
      writer->observe(this);
      held = std::move(writer);
      return;
    }
    writer->respond(200, {}, request.body);
  }
  void on_refused(int, std::string_view reason) override { refused += std::string(reason) + ";"; }
  void on_client_gone() override { ++gone; }
  void on_writable() override { ++writable; }

  std::string targets, refused;
  ResponseWriterPtr held;
  int gone = 0, writable = 0;
};

struct Fixture {
  Loop loop;
  Echo echo;
  std::unique_ptr<HttpServer> server;

  explicit Fixture(ServerSettings settings = {})
      : server(std::make_unique<HttpServer>(loop, echo, settings)) {
    BOOST_REQUIRE(server->listen(*resolve("127.0.0.1", 0)).has_value());
  }
  ~Fixture() {
    server.reset();
    echo.held.reset();
  }
  RawClient client() { return RawClient(loop, server->port()); }
};
struct Default : Fixture {};

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++n;
  return n;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(answers_keep_the_connection_and_pipelined_requests_in_order, Default) {
  RawClient client = this->client();
  client.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\noneGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n");
  BOOST_TEST(client.receives("two"));
  BOOST_TEST(echo.targets == "POST /a;GET /b;POST /c;");
  BOOST_TEST(count(client.received, "HTTP/1.1 200 OK\r\n") == 3u);
  client.send("GET /d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  BOOST_TEST(client.sees_end());
  BOOST_TEST(client.closed);
  BOOST_TEST(client.received.find("connection: close") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_request_may_arrive_byte_by_byte, Default) {
  RawClient client = this->client();
  for (const char c : std::string_view(
           "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")) {
    client.send({&c, 1});
    loop.turn(1ms);
  }
  BOOST_TEST(client.receives("\r\n\r\nhi"));
}

BOOST_FIXTURE_TEST_CASE(a_large_body_arrives_whole_and_its_head_stays_readable, Default) {
  RawClient client = this->client();
  std::string body(5'000'000, 'x');
  body.back() = 'y';
  client.send("POST /big?query HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
  client.send(body);
  BOOST_TEST(client.receives("xy"));
  BOOST_TEST(echo.targets == "POST /big?query;");
  BOOST_TEST(client.received.size() > 5'000'000u);
}

BOOST_FIXTURE_TEST_CASE(continue_is_sent_before_a_body_and_not_before_a_refusal, Default) {
  RawClient client = this->client();
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  BOOST_TEST(client.receives("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send("ok");
  BOOST_TEST(client.receives("\r\n\r\nok"));
  RawClient refused = this->client();
  refused.send("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n");
  BOOST_TEST(refused.sees_end());
  BOOST_TEST(refused.received.substr(0, 12) == "HTTP/1.1 413");
  BOOST_TEST(refused.received.find("67108864") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_chunked_body_over_the_limit_is_refused_by_name) {
  ServerSettings settings;
  settings.max_body_bytes = 10;
  Fixture f(settings);
  RawClient client = f.client();
  client.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n8\r\n12345678\r\n");
  BOOST_TEST(client.sees_end());
  BOOST_TEST(client.closed);
  BOOST_TEST(client.received.find("over the limit of 10 bytes") != std::string::npos);
  BOOST_TEST(f.echo.refused == "body_too_large;");
}

BOOST_FIXTURE_TEST_CASE(malformed_requests_get_a_reason_and_the_end_of_the_connection, Default) {
  struct Row {
    const char* bytes;
    const char* reason;
  };
  for (const Row row :
       {Row{"GET / HTTP/1.1\n\n", "bare_newline"}, Row{"GET / HTTP/2.0\r\nHost: x\r\n\r\n", "bad_version"},
        Row{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "conflicting_framing"},
        Row{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad_chunk"}}) {
    RawClient client = this->client();
    client.send(row.bytes);
    BOOST_TEST(client.sees_end(), row.reason);
    BOOST_TEST(client.received.find(std::string("x-signalbox-reason: ") + row.reason) != std::string::npos,
               client.received);
  }
  BOOST_TEST(echo.targets == "");
}

BOOST_FIXTURE_TEST_CASE(a_client_that_leaves_is_noticed_while_it_waits, Default) {
  RawClient client = this->client();
  client.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(turn_until(loop, [&] { return echo.held != nullptr; }));
  client.leave();
  BOOST_TEST(turn_until(loop, [&] { return echo.gone == 1; }));
  BOOST_TEST(echo.held->ended());
  echo.held->respond(200, {}, "nobody reads this");
  BOOST_TEST(server->connections() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_leaves_with_unread_requests_behind_it_is_noticed_too, Default) {
  RawClient client = this->client();
  client.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(turn_until(loop, [&] { return echo.held != nullptr; }));
  client.send("GET /unread HTTP/1.1\r\nHost: x\r\n\r\n");
  client.leave_by_reset();
  BOOST_TEST(turn_until(loop, [&] { return echo.gone == 1; }));
  BOOST_TEST(echo.targets == "GET /hold;");
}

BOOST_FIXTURE_TEST_CASE(a_stream_stops_at_the_high_water_mark_and_goes_on, Default) {
  RawClient client = this->client();
  client.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(turn_until(loop, [&] { return echo.held != nullptr; }));
  echo.held->begin(200, {});
  const std::string piece(64 * 1024, 'p');
  std::size_t written = 0;
  while (echo.held->write(piece)) {
    written += piece.size();
    loop.turn(Duration::zero());
    BOOST_REQUIRE(written < 64u << 20);
  }
  BOOST_TEST(turn_until(loop, [&] { return client.poll(), echo.writable == 1; }));
  echo.held->finish();
  BOOST_TEST(client.receives("\r\n0\r\n\r\n"));
  BOOST_TEST(client.received.size() > written);
}

BOOST_FIXTURE_TEST_CASE(old_clients_get_streams_that_end_with_the_connection, Default) {
  RawClient client = this->client();
  client.send("GET /hold HTTP/1.0\r\n\r\n");
  BOOST_TEST(turn_until(loop, [&] { return echo.held != nullptr; }));
  echo.held->begin(200, {});
  echo.held->write("piece");
  echo.held->finish();
  BOOST_TEST(client.sees_end());
  BOOST_TEST(client.received.find("\r\n\r\npiece") != std::string::npos);
  BOOST_TEST(client.received.find("chunked") == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(an_aborted_or_forgotten_answer_is_seen_as_incomplete, Default) {
  RawClient client = this->client();
  client.send("GET /hold HTTP/1.0\r\n\r\n");
  BOOST_TEST(turn_until(loop, [&] { return echo.held != nullptr; }));
  echo.held->begin(200, {});
  echo.held->write("half");
  echo.held->abort();
  BOOST_TEST(client.sees_end());
  BOOST_TEST(client.reset);
  RawClient other = this->client();
  other.send("GET /drop HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(other.sees_end());
  BOOST_TEST(other.received == "");
}

BOOST_FIXTURE_TEST_CASE(head_requests_get_the_length_and_no_body, Default) {
  RawClient client = this->client();
  client.send(
      "HEAD /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbodyGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(client.receives("content-length: 0\r\n\r\n"));
  BOOST_TEST(client.received.find("content-length: 4\r\n\r\nHTTP/1.1 200") != std::string::npos,
             client.received);
}

BOOST_AUTO_TEST_CASE(slow_heads_and_bodies_are_answered_with_408) {
  ServerSettings settings;
  settings.head_timeout = 20ms;
  settings.body_timeout = 20ms;
  Fixture f(settings);
  for (const char* bytes : {"GET / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12"}) {
    RawClient client = f.client();
    client.send(bytes);
    BOOST_TEST(client.sees_end());
    BOOST_TEST(client.received.substr(0, 12) == "HTTP/1.1 408");
  }
}

BOOST_FIXTURE_TEST_CASE(draining_ends_idle_connections_at_once_and_busy_ones_after_their_answer, Default) {
  RawClient idle = this->client(), busy = this->client();
  busy.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(turn_until(loop, [&] { return echo.held != nullptr && server->connections() == 2; }));
  server->drain();
  BOOST_TEST(idle.sees_end());
  BOOST_TEST(server->connections() == 1u);
  echo.held->respond(200, {}, "last words");
  BOOST_TEST(busy.sees_end());
  BOOST_TEST(busy.received.find("last words") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(more_connections_than_the_limit_wait_for_a_place) {
  ServerSettings settings;
  settings.max_connections = 1;
  Fixture f(settings);
  RawClient first = f.client(), second = f.client();
  second.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(!second.receives("200", 30ms));
  first.leave();
  BOOST_TEST(second.receives("HTTP/1.1 200"));
}

BOOST_AUTO_TEST_CASE(timers_fire_in_order_and_posts_arrive_from_other_threads) {
  Loop loop;
  std::string order;
  Timer late(loop, [&] { order += "late "; }), early(loop, [&] { order += "early "; }),
      moved(loop, [&] { order += "moved "; });
  Timer never(loop, [&] { order += "never "; });
  late.arm_in(3ms), early.arm_in(1ms), moved.arm_in(1ms), never.arm_in(2ms);
  moved.arm_in(5ms), never.disarm();
  BOOST_TEST(turn_until(loop, [&] { return !moved.armed(); }));
  BOOST_TEST(order == "early late moved ");
  bool posted = false;
  std::thread other([&] { loop.post([&] { posted = true; }); });
  BOOST_TEST(turn_until(loop, [&] { return posted; }));
  other.join();
}

BOOST_AUTO_TEST_CASE(endpoints_answer_by_path_prefix_and_method) {
  Loop loop;
  Endpoints endpoints;
  endpoints.get("/healthz", [](const Request&, std::string_view) {
    return Answer{200, "text/plain", "ok\n"};
  });
  endpoints.get("/explain/", [](const Request&, std::string_view rest) {
    return json_answer(200, "\"" + std::string(rest) + "\"");
  });
  endpoints.post("/v1/route", [](const Request& request, std::string_view) {
    return Answer{200, "text/plain", std::string(request.body)};
  });
  HttpServer server(loop, endpoints, {});
  BOOST_REQUIRE(server.listen(*resolve("127.0.0.1", 0)).has_value());
  struct Row {
    const char* request;
    const char* status;
    const char* body;
  };
  for (const Row row :
       {Row{"GET /healthz?x=1", "200", "ok\n"}, Row{"GET /explain/a-7", "200", "\"a-7\""},
        Row{"GET /explain/a/b", "200", "\"a/b\""}, Row{"POST /healthz", "405", "method_not_allowed"},
        Row{"GET /v1/route", "405", "method_not_allowed"}, Row{"GET /none", "404", "unknown_path"},
        Row{"DELETE /none", "404", "unknown_path"}, Row{"POST /v1/route", "200", "\r\n\r\n"}}) {
    RawClient client(loop, server.port());
    client.send(std::string(row.request) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    BOOST_TEST(client.sees_end());
    BOOST_TEST(client.received.substr(9, 3) == row.status, row.request);
    BOOST_TEST(client.received.find(row.body) != std::string::npos, row.request);
  }
}
