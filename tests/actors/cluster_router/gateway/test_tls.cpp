// Engines that speak TLS, as the fleet table names them.
#include "tests/actors/cluster_router/gateway/fixture.hpp"
#include "tests/actors/cluster_router/net/certificates.hpp"

using namespace signalbox;
using namespace signalbox::gateway;

namespace {

struct Model final : net::HttpHandler {
  void on_request(net::ResponseWriterPtr writer) override {
    ++requests;
    const std::array fields{http::Field{"content-type", "application/json"}};
    writer->respond(200, fields, R"({"ok":true})");
  }
  int requests = 0;
};

/// Two engines with TLS, each with a certificate of its own.
struct Fixture : GatewayFixture {
  struct Engine {
    explicit Engine(net::Loop& loop) : server(loop, model, {}) {}
    net::Certificate certificate{{.names = "DNS:engine"}};
    Model model;
    net::HttpServer server;
  };
  tests::Folder folder;
  std::vector<std::unique_ptr<Engine>> secure;

  Fixture() : GatewayFixture(0) {
    for (int i = 0; i < 2; ++i) {
      Engine& engine = *secure.emplace_back(std::make_unique<Engine>(loop));
      engine.server.use_tls(*net::TlsServer::load(folder.write("c.pem", engine.certificate.pem()),
                                                  folder.write("k.pem", engine.certificate.key_pem())));
      BOOST_REQUIRE(engine.server.listen(*net::resolve("127.0.0.1", 0)).has_value());
    }
  }
  void adopt(const std::vector<std::string>& identities, const EngineAccessMap& access = {}) {
    std::vector<std::string> addresses;
    for (const auto& engine : secure) addresses.push_back(fmt::format("127.0.0.1:{}", engine->server.port()));
    gateway->adopt(routes_to(test_policy, addresses, access, [&, i = 0u](schema::EngineRow& row) mutable {
      row.url = "https" + row.url.substr(4);
      row.tls_identity = identities[i++];
    }));
  }
  std::string pin(int of) const {
    return "sha256:" + secure[static_cast<std::size_t>(of)]->certificate.sha256();
  }
  std::string ask() {
    auto asking = client();
    asking.send(chat("", R"({"model":"m","messages":[]})"));
    BOOST_TEST(asking.receives("\r\n\r\n"));
    BOOST_TEST(asking.receives("}"));
    return asking.received;
  }
  /// How the attempts of this answer's decision ended.
  std::vector<schema::AttemptEnd> ends(const std::string& answer) {
    constexpr std::string_view name = "x-signalbox-decision: ";
    const std::size_t at = answer.find(name) + name.size();
    const auto id = routing::parse_decision_id(answer.substr(at, answer.find('\r', at) - at));
    BOOST_REQUIRE(id.has_value());
    const auto record = gateway->dispatcher().record(*id, loop.now());
    BOOST_REQUIRE(record.has_value());
    std::vector<schema::AttemptEnd> out;
    for (const auto& attempt : record->attempts) out.push_back(attempt.end);
    return out;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(requests_reach_engines_that_are_who_they_must_be, Fixture) {
  adopt({pin(0), pin(1)});
  for (int i = 0; i < 8; ++i) BOOST_TEST(ask().find("200 OK") != std::string::npos);
  BOOST_TEST(secure[0]->model.requests + secure[1]->model.requests == 8);
  BOOST_TEST(gateway->take_problems().empty());
}

BOOST_FIXTURE_TEST_CASE(an_engine_with_a_wrong_certificate_is_sent_nothing_and_its_requests_go_elsewhere,
                        Fixture) {
  adopt({pin(1), pin(1)});
  bool tried = false;
  for (int i = 0; i < 20 && !tried; ++i) {
    const std::string answer = ask();
    BOOST_TEST(answer.find("200 OK") != std::string::npos, answer);
    const auto ended = ends(answer);
    tried = ended.size() == 2;
    if (tried) BOOST_TEST((ended[0] == schema::AttemptEnd::untrusted));
    BOOST_TEST((ended.back() == schema::AttemptEnd::succeeded));
  }
  BOOST_TEST(tried);
  BOOST_TEST(secure[0]->model.requests == 0);
  const auto problems = gateway->take_problems();
  BOOST_REQUIRE(problems.size() == 1u);
  BOOST_TEST(problems[0].engine.str() == "e0");
  BOOST_TEST(problems[0].untrusted);
  BOOST_TEST(problems[0].text.find(pin(0).substr(7)) != std::string::npos, problems[0].text);
  BOOST_TEST(gateway->take_problems().empty());
}

BOOST_FIXTURE_TEST_CASE(https_without_an_identity_or_without_its_authorities_is_not_tried, Fixture) {
  EngineAccess access;
  access.tls_authorities = folder / "none.pem";
  adopt({"", "name:engine"}, {{EngineName("e1"), access}});
  const std::string answer = ask();
  BOOST_TEST(answer.find("HTTP/1.1 503 ") == 0u, answer);
  BOOST_TEST(secure[0]->model.requests + secure[1]->model.requests == 0);
}

BOOST_FIXTURE_TEST_CASE(clients_speak_tls_where_a_certificate_is_given, Fixture) {
  adopt({pin(0), pin(1)});
  gateway->use_tls(secure[0]->server.tls());
  auto plain = client();
  plain.send(chat());
  BOOST_TEST(plain.receives("HTTP/1.1 400 "));
  BOOST_TEST(gateway->server_counters().in_the_clear == 1u);
}

BOOST_AUTO_TEST_CASE(doors_say_why_an_engine_cannot_be_reached) {
  schema::FleetTable table;
  for (const auto& [url, identity] :
       std::vector<std::pair<std::string, std::string>>{{"https://127.0.0.1:1", ""},
                                                        {"http://127.0.0.1:1", "name:x"},
                                                        {"https://127.0.0.1:1", "sha256:12"}}) {
    schema::EngineRow row;
    row.name = EngineName("e" + std::to_string(table.engines.size()));
    row.url = url;
    row.tls_identity = identity;
    table.engines.push_back(row);
  }
  const auto book = build_address_book(table, {});
  for (const EngineDoor& door : *book) {
    BOOST_TEST(!door.address.has_value(), door.name.str());
    BOOST_TEST(!door.problem.empty(), door.name.str());
  }
}
