// A gateway between raw clients and scripted engines, all on one loop.
#pragma once

#include <fmt/ranges.h>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

#include "actors/cluster_router/gateway/gateway.hpp"
#include "cluster-config/policy/compile.hpp"
#include "messages/base/digest.hpp"
#include "tests/actors/cluster_router/net/scripted_server.hpp"

namespace signalbox::gateway {

inline const std::string test_policy = R"(
policy test version 1
topology { zone here { region r } }
models { m versions 1.0  lonely versions 1.0 }
class all { tenants * model m criticality critical residency any }
class alone { tenants * model lonely criticality standard residency any }
otherwise reject 403
limits { in_flight(engine) <= 4 }
retry ratio 100% burst 50 attempts 2 before first_byte other engine on connect, reset, timeout, 502, 503 not on 400, 401, 403, 404, 413, 422
timeouts connect 2s first_byte 20s gap 20s total 60s
queue wait 5s depth 8 retry_after from 1s to 10s
)";

/// Engines e0, e1, ... that serve model "m" at these addresses, under this policy; `edit` may change a row.
inline Routes routes_to(const std::string& policy_text, const std::vector<std::string>& addresses,
                        const EngineAccessMap& access = {},
                        const std::function<void(schema::EngineRow&)>& edit = {}) {
  auto compiled = policy::compile_text(policy_text, "test.policy");
  BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? std::string() : compiled.error().text()));
  auto table = std::make_shared<schema::FleetTable>();
  table->fleet = "test";
  table->content = digest_of(fmt::format("{}", fmt::join(addresses, " ")));
  table->clusters.push_back({ClusterName("c1"), DomainName("r"), DomainName("here")});
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    schema::EngineRow row;
    row.name = EngineName("e" + std::to_string(i));
    row.cluster = ClusterIndex(0);
    row.rack = DomainName("rack" + std::to_string(i));
    row.url = "http://" + addresses[i];
    row.models = {ModelName("m")};
    row.kind = EngineKind::vllm;
    row.step_s = 0.01, row.per_sequence_s = 0.001, row.per_prefill_token_s = 1e-5;
    row.kv_tokens = 1e5, row.max_batch = 16;
    if (edit) edit(row);
    table->engines.push_back(row);
  }
  routing::ViewInputs inputs;
  inputs.cluster = ClusterName("c1");
  inputs.policy = std::make_shared<policy::CompiledPolicy>(std::move(*compiled));
  inputs.table = table;
  auto view = routing::build_view(inputs, nullptr);
  BOOST_REQUIRE_MESSAGE(view.has_value(), (view ? std::string() : view.error().detail));
  return {*view, build_address_book(*table, access)};
}

struct GatewayFixture {
  net::Loop loop;
  std::vector<std::unique_ptr<net::ScriptedServer>> engines;
  std::unique_ptr<Gateway> gateway;

  explicit GatewayFixture(std::size_t count = 2, std::string policy_text = test_policy,
                          net::ServerSettings server = {}, std::size_t continuation_bytes = 0) {
    for (std::size_t i = 0; i < count; ++i) engines.push_back(std::make_unique<net::ScriptedServer>(loop));
    GatewayOptions options;
    options.dispatcher.cluster = ClusterName("c1");
    options.dispatcher.router = ProcessName("r1");
    options.server = server;
    options.continuation_bytes = continuation_bytes;
    gateway = std::make_unique<Gateway>(loop, options);
    BOOST_REQUIRE(gateway->listen(*net::resolve("127.0.0.1", 0)).has_value());
    adopt(policy_text);
  }
  virtual ~GatewayFixture() { BOOST_TEST(gateway->dispatcher().open() == 0u); }

  void adopt(const std::string& policy_text) {
    std::vector<std::string> addresses;
    for (const auto& engine : engines) addresses.push_back(engine->address().text());
    gateway->adopt(routes_to(policy_text, addresses));
  }

  net::RawClient client() { return net::RawClient(loop, gateway->port()); }

  /// A connection to some engine that has received `text` and was not found before.
  net::ScriptedServer::Peer& engine_hears(std::string_view text, std::size_t* which = nullptr) {
    net::ScriptedServer::Peer* found = nullptr;
    const bool heard = net::turn_until(loop, [&] {
      for (std::size_t i = 0; i < engines.size() && found == nullptr; ++i) {
        engines[i]->poll();
        for (auto& peer : engines[i]->peers)
          if (peer->stream && !peer->closed && peer->received.find(text) != std::string::npos) {
            found = peer.get();
            if (which != nullptr) *which = i;
            break;
          }
      }
      return found != nullptr;
    });
    BOOST_REQUIRE_MESSAGE(heard, "no engine heard '" << text << "'");
    found_ = found->received;
    found->received.clear();
    return *found;
  }
  const std::string& heard() const { return found_; }
  bool sees_close(net::ScriptedServer::Peer& peer) {
    return net::turn_until(loop, [&] { return peer.poll(), peer.closed; });
  }

 private:
  std::string found_;
};

inline std::string chat(
    std::string_view extra_fields = "",
    std::string_view body = R"({"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true})",
    std::string_view path = "/v1/chat/completions") {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: router\r\nContent-Type: application/json\r\n" +
         std::string(extra_fields) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

inline const std::string stream_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
inline std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}
inline std::string json_answer(std::string_view body, std::string_view status = "200 OK",
                               std::string_view extra = "") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
                     status, extra, body.size(), body);
}

/// Answers one of the requests that chat() made; false if the engine has none.
inline bool answer_one(net::ScriptedServer& engine) {
  engine.poll();
  for (auto& peer : engine.peers)
    if (peer->received.find("\"hi\"") != std::string::npos) {
      peer->received.clear();
      peer->say(json_answer("{\"ok\":1}"));
      return true;
    }
  return false;
}

}  // namespace signalbox::gateway
