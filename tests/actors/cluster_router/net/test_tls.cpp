// TLS on both sides of a loop: our server and our client against each other, and against peers that misbehave.
#include <fmt/ranges.h>

#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/net/client.hpp"
#include "actors/cluster_router/net/server.hpp"
#include "tests/actors/cluster_router/net/certificates.hpp"
#include "tests/actors/cluster_router/net/raw_client.hpp"
#include "tests/actors/cluster_router/net/scripted_server.hpp"

using namespace signalbox;
using namespace signalbox::net;

namespace {

/// Answers each request with its body.
struct Echo final : HttpHandler {
  void on_request(ResponseWriterPtr writer) override {
    ++requests;
    writer->respond(200, {}, writer->request().body);
  }
  int requests = 0;
};

struct Record final : CallObserver {
  void on_answer(const http::ResponseHead& head) override { log += std::to_string(head.status) + " "; }
  void on_body(std::string_view bytes) override { body += bytes; }
  void on_end() override { log += "end", over = true; }
  void on_fault(CallFault fault) override { log += to_string(fault), over = true; }
  std::unique_ptr<Call> call;
  std::string log, body;
  bool over = false;
};

TlsIdentity named(const std::string& name) { return {name, {}}; }
TlsIdentity pinned(std::vector<std::string> pins) { return {{}, std::move(pins)}; }

struct Fixture {
  tests::Folder folder;
  Certificate authority{{.names = "DNS:authority", .authority = true}};
  Certificate own{{.names = "DNS:localhost,IP:127.0.0.1"}, &authority};
  Loop loop;
  Echo echo;
  ServerSettings settings;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<Upstream> upstream;
  CallLimits limits;
  std::string text;

  void serve(const Certificate& certificate) {
    auto tls = TlsServer::load(folder.write("chain.pem", certificate.pem()),
                               folder.write("key.pem", certificate.key_pem()));
    BOOST_REQUIRE_MESSAGE(tls.has_value(), (tls ? "" : tls.error().text()));
    if (!server) {
      server = std::make_unique<HttpServer>(loop, echo, settings);
      BOOST_REQUIRE(server->listen(*resolve("127.0.0.1", 0)).has_value());
    }
    server->use_tls(*tls);
  }
  void expect(TlsIdentity identity, const Address& address) {
    const auto authorities = TlsAuthorities::load(folder.write("authority.pem", authority.pem()));
    BOOST_REQUIRE(authorities.has_value());
    auto tls = TlsClient::make(std::move(identity), authorities->get(), "localhost");
    BOOST_REQUIRE_MESSAGE(tls.has_value(), (tls ? "" : tls.error().text()));
    PoolSettings pool;
    pool.tls = *tls;
    upstream = std::make_unique<Upstream>(loop, address, pool);
  }
  void expect(TlsIdentity identity) { expect(std::move(identity), *resolve("127.0.0.1", server->port())); }

  void start(Record& record, std::string_view body = "body") {
    record.call =
        upstream->start(fmt::format("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.size()),
                        body, limits, record);
  }
  std::string call(std::string_view body = "body") {
    Record record;
    start(record, body);
    BOOST_TEST(turn_until(
        loop, [&] { return record.over; }, 20s));
    text = record.body;
    return record.log;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(calls_pass_and_reuse_their_connection, Fixture) {
  serve(own);
  expect(named("localhost"));
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(call() == "200 end");
    BOOST_TEST(text == "body");
    BOOST_TEST(upstream->idle() == 1u);
  }
  BOOST_TEST(server->counters().handshakes == 1u);
}

BOOST_FIXTURE_TEST_CASE(large_bodies_pass_both_ways, Fixture) {
  serve(own);
  expect(pinned({own.sha256()}));
  std::string large(5'000'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>('a' + i % 26);
  BOOST_TEST(call(large) == "200 end");
  BOOST_TEST((text == large));
  BOOST_TEST(upstream->idle() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_server_is_recognised_by_name_by_address_or_by_any_of_its_pins, Fixture) {
  serve(own);
  const Certificate other({.names = "DNS:localhost"});
  const std::vector<std::pair<const char*, TlsIdentity>> rows{
      {"name", named("localhost")},
      {"address", named("127.0.0.1")},
      {"pin", pinned({own.sha256()})},
      {"next pin", pinned({other.sha256(), own.sha256()})}};
  for (const auto& [what, identity] : rows) {
    expect(identity);
    BOOST_TEST(call() == "200 end", what << ": " << upstream->problem());
  }
}

BOOST_FIXTURE_TEST_CASE(a_wrong_server_is_sent_nothing_and_named, Fixture) {
  const Certificate stranger({.names = "DNS:localhost"});
  const Certificate expired({.names = "DNS:localhost", .from_s = -7200, .until_s = -3600}, &authority);
  struct Row {
    const char* what;
    const Certificate* shown;
    TlsIdentity wanted;
    std::vector<std::string> said;
  };
  const std::vector<Row> rows{
      {"another certificate", &own, pinned({stranger.sha256()}), {own.sha256(), stranger.sha256(), "pinned"}},
      {"another name", &own, named("engine-7"), {"engine-7", "ostname mismatch", own.sha256()}},
      {"another authority", &stranger, named("localhost"), {"self-signed"}},
      {"out of its time", &expired, named("localhost"), {"expired"}},
  };
  for (const Row& row : rows) {
    serve(*row.shown);
    expect(row.wanted);
    BOOST_TEST(call() == "untrusted", row.what);
    for (const std::string& part : row.said)
      BOOST_TEST(upstream->problem().find(part) != std::string::npos,
                 row.what << ": " << upstream->problem());
  }
  BOOST_TEST(echo.requests == 0);
}

BOOST_FIXTURE_TEST_CASE(a_pin_holds_whatever_else_the_certificate_says, Fixture) {
  const Certificate expired({.names = "DNS:elsewhere", .from_s = -7200, .until_s = -3600});
  serve(expired);
  expect(pinned({expired.sha256()}));
  BOOST_TEST(call() == "200 end");
}

BOOST_FIXTURE_TEST_CASE(a_plain_client_of_a_tls_port_is_told_so, Fixture) {
  serve(own);
  RawClient client(loop, server->port());
  client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  BOOST_TEST(client.receives("HTTP/1.1 400 "));
  BOOST_TEST(client.receives("https://"));
  BOOST_TEST(client.sees_end());
  BOOST_TEST(server->counters().in_the_clear == 1u);
  BOOST_TEST(echo.requests == 0);
}

BOOST_FIXTURE_TEST_CASE(a_slow_handshake_is_ended, Fixture) {
  settings.handshake_timeout = 50ms;
  serve(own);
  RawClient silent(loop, server->port()), halting(loop, server->port());
  halting.send("\x16\x03\x01");
  BOOST_TEST(silent.sees_end());
  BOOST_TEST(halting.sees_end());
  BOOST_TEST(server->counters().handshakes_failed == 2u);
  BOOST_TEST(server->connections() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_server_that_does_not_finish_a_handshake_or_speaks_plainly_fails_the_call, Fixture) {
  ScriptedServer scripted(loop);
  limits.connect = 100ms;
  expect(named("localhost"), scripted.address());
  BOOST_TEST(call() == "handshake_failed");
  BOOST_TEST(upstream->problem().find("in time") != std::string::npos, upstream->problem());

  limits.connect = 10s;
  Record plain, gone;
  start(plain);
  BOOST_REQUIRE(turn_until(loop, [&] {
    scripted.poll();
    return scripted.peers.size() == 2 && !scripted.peers[1]->received.empty();
  }));
  scripted.peers[1]->say("HTTP/1.1 400 Bad Request\r\n\r\n");
  BOOST_TEST(turn_until(loop, [&] { return plain.over; }));
  BOOST_TEST(plain.log == "handshake_failed");

  start(gone);
  BOOST_REQUIRE(turn_until(loop, [&] {
    scripted.poll();
    return scripted.peers.size() == 3 && !scripted.peers[2]->received.empty();
  }));
  scripted.peers[2]->hang_up();
  BOOST_TEST(turn_until(loop, [&] { return gone.over; }));
  BOOST_TEST(gone.log == "handshake_failed");
  for (const auto& peer : scripted.peers) BOOST_TEST(peer->received.find("POST") == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_new_certificate_is_shown_to_new_connections, Fixture) {
  serve(own);
  expect(pinned({own.sha256()}));
  BOOST_TEST(call() == "200 end");
  const Certificate next({.names = "DNS:localhost"}, &authority);
  serve(next);
  BOOST_TEST(server->tls()->certificate().sha256 == next.sha256());
  BOOST_TEST(call() == "200 end");  // over the connection that stands
  upstream->close_idle();
  BOOST_TEST(call() == "untrusted");
  expect(pinned({next.sha256()}));
  BOOST_TEST(call() == "200 end");
}

BOOST_FIXTURE_TEST_CASE(a_body_until_the_end_is_cut_unless_tls_says_that_it_ended, Fixture) {
  struct Untold final : HttpHandler {
    void on_request(ResponseWriterPtr writer) override {
      writer->begin(200, {});
      writer->write("part");
      end ? writer->finish() : kept.push_back(std::move(writer));
    }
    std::vector<ResponseWriterPtr> kept;
    bool end = true;
  } untold;
  HttpServer old(loop, untold, settings);
  BOOST_REQUIRE(old.listen(*resolve("127.0.0.1", 0)).has_value());
  serve(own);
  old.use_tls(server->tls());
  expect(named("localhost"), *resolve("127.0.0.1", old.port()));
  const auto ask = [&](Record& record) {
    record.call = upstream->start("GET / HTTP/1.0\r\n\r\n", {}, limits, record);
  };
  Record whole, cut;
  ask(whole);
  BOOST_TEST(turn_until(loop, [&] { return whole.over; }));
  BOOST_TEST(whole.log == "200 end");
  untold.end = false;
  ask(cut);
  BOOST_TEST(turn_until(loop, [&] { return !untold.kept.empty() && cut.body == "part"; }));
  untold.kept.clear();  // resets
  BOOST_TEST(turn_until(loop, [&] { return cut.over; }));
  BOOST_TEST(cut.log == "200 truncated");
}

BOOST_FIXTURE_TEST_CASE(what_is_wrong_with_a_listeners_files_is_named, Fixture) {
  const Certificate other({});
  const std::string chain = folder.write("good.pem", own.pem()),
                    key = folder.write("good-key.pem", own.key_pem());
  struct Row {
    const char* what;
    std::string chain, key, at, said;
  };
  const std::vector<Row> rows{
      {"no file", folder / "none.pem", key, "none.pem", "No such file"},
      {"no key file", chain, folder / "none-key.pem", "none-key.pem", "No such file"},
      {"no certificate", folder.write("text.pem", "hello\n"), key, "text.pem", "no certificate"},
      {"no key", chain, chain, "good.pem", "no private key"},
      {"another's key", chain, folder.write("other.pem", other.key_pem()), "other.pem", "does not belong"},
      {"a locked key", chain, folder.write("locked.pem", own.locked_key_pem()), "locked.pem", "passphrase"},
  };
  for (const Row& row : rows) {
    const auto loaded = TlsServer::load(row.chain, row.key);
    BOOST_REQUIRE_MESSAGE(!loaded.has_value(), row.what);
    BOOST_TEST(loaded.error().where.ends_with(row.at), row.what << ": " << loaded.error().text());
    BOOST_TEST(loaded.error().what.find(row.said) != std::string::npos,
               row.what << ": " << loaded.error().text());
  }
  BOOST_TEST(!TlsAuthorities::load(folder / "none.pem").has_value());
  BOOST_TEST(!TlsAuthorities::load(key).has_value());
}

BOOST_AUTO_TEST_CASE(identities_are_read_as_fleet_tables_write_them) {
  const std::string a(64, 'a'), b(64, 'b');
  BOOST_TEST(TlsIdentity::parse("name:engine-1.example")->name == "engine-1.example");
  BOOST_TEST((TlsIdentity::parse("sha256:" + a)->pins == std::vector{a}));
  BOOST_TEST((TlsIdentity::parse("sha256:" + a + "," + b)->pins == std::vector{a, b}));
  const std::vector<std::string> malformed{
      "", "name:", "engine-1", "sha256:", "sha256:abc", "sha1:" + a, "sha256:" + a + ","};
  for (const std::string& bad : malformed) BOOST_TEST(!TlsIdentity::parse(bad).has_value(), bad);
}
