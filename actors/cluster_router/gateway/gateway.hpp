// The data plane of one event loop: clients on one side, engines on the other, a Dispatcher that decides between them. It knows
// neither actors nor the bus, and serves on when all of those are gone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/cluster_router/gateway/api_keys.hpp"
#include "actors/cluster_router/gateway/continuation.hpp"
#include "actors/cluster_router/gateway/cors.hpp"
#include "actors/cluster_router/gateway/engines.hpp"
#include "actors/cluster_router/gateway/meters.hpp"
#include "actors/cluster_router/gateway/reading.hpp"
#include "actors/cluster_router/gateway/routes.hpp"
#include "actors/cluster_router/net/server.hpp"
#include "actors/cluster_router/routing/dispatcher.hpp"
#include "actors/cluster_router/tracing/sampler.hpp"

namespace signalbox::gateway {

class Exchange;

struct GatewayOptions {
  routing::DispatcherOptions dispatcher;
  net::ServerSettings server;
  ReaderOptions reader;
  std::vector<std::string> cors_origins;
  tracing::SamplerOptions traces;
  std::function<void()>
      on_open;  ///< called once, on the loop's thread, when clients are accepted; may be empty
  std::size_t continuation_bytes = 0;  ///< for streams that may go on at another engine; 0: none does
  std::function<void(std::uint64_t loops)>
      wake_loops;  ///< calls pump_soon() on these other loops, a bit for each; empty: there is one loop
  bool hide_engines = false;  ///< x-signalbox-engine carries the engine's number instead of its name
};

/// Totals since the start.
struct GatewayCounters {
  std::uint64_t requests = 0;           ///< whole requests that were to be routed
  std::uint64_t misfits = 0;            ///< of these, refused because of what they are: 4xx
  std::uint64_t refused = 0;            ///< of these, refused by the dispatcher
  std::uint64_t malformed = 0;          ///< refused by the HTTP server
  std::uint64_t unauthorized = 0;       ///< without a key, or with one that is not known
  std::uint64_t rate_limited = 0;       ///< their key's share was used up
  std::uint64_t attempts = 0;           ///< calls to engines
  std::uint64_t hedges = 0;             ///< of these, second ones beside a late first one
  std::uint64_t hedges_won = 0;         ///< of these, those that answered first
  std::uint64_t stale_connections = 0;  ///< pooled connections that turned out to be closed
  std::uint64_t answers_completed = 0;
  std::uint64_t streams_continued = 0;       ///< went on at another engine
  std::uint64_t streams_broken = 0;          ///< ended by an error event or a reset after their first byte
  std::uint64_t clients_left_waiting = 0;    ///< before the first byte
  std::uint64_t clients_left_streaming = 0;  ///< after it
  std::uint64_t events = 0;                  ///< server-sent events relayed
  std::uint64_t body_bytes_to_clients = 0;

  /// Of several loops.
  GatewayCounters& operator+=(const GatewayCounters& other);
};

class Gateway final : private net::HttpHandler {
 public:
  Gateway(net::Loop& loop, GatewayOptions options);
  ~Gateway() override;

  /// Takes the port and accepts from then on. Errors: io.
  Status listen(const net::Address& address, bool share_port = false);
  /// Takes the port, and accepts from the first adopt() or open() on: until then, another process that has it too serves.
  Status bind(const net::Address& address, bool share_port) { return server_.bind(address, share_port); }
  /// Errors: io.
  Status open();
  std::uint16_t port() const { return server_.port(); }
  /// Routes by these from now on.
  void adopt(Routes routes);
  /// Hands new connections to another process on this port, if there is one (then the answer is true); accepts none then, lets what
  /// is here finish, ends it after `grace` in words; when all of that is sent calls `done`, once. `with_first`: what the loop
  /// that accepts for this one answered.
  bool drain(Duration grace, std::function<void()> done, std::optional<bool> with_first = {});
  /// Shares what any of the group accepts; before that.
  void join(net::ServerGroup& group) { server_.join(group); }
  /// Asks the dispatcher soon for requests that waited.
  void pump_soon();

  routing::Dispatcher& dispatcher() { return dispatcher_; }
  const routing::Dispatcher& dispatcher() const { return dispatcher_; }
  const GatewayCounters& counters() const { return counters_; }
  const Meters& meters() const { return meters_; }
  std::size_t client_connections() const { return server_.connections(); }
  const net::ServerCounters& server_counters() const { return server_.counters(); }
  /// Speaks TLS with clients that come from now on; null: plain HTTP.
  void use_tls(std::shared_ptr<const net::TlsServer> tls) { server_.use_tls(std::move(tls)); }
  /// Asks for one of these keys from now on; null: anyone may ask.
  void use_api_keys(std::shared_ptr<const ApiKeyTable> keys) { api_keys_ = std::move(keys); }
  /// Engines with which no session could be made since the last call, and why.
  std::vector<routing::EngineProblem> take_problems();
  /// Traces of requests that are over since the last call, with their decisions' records.
  std::vector<tracing::EndedTrace> take_traces();
  /// Traces that take_traces() left out since the last call: their decisions' records were not kept any longer.
  std::uint64_t take_forgotten_traces() { return std::exchange(forgotten_traces_, 0); }
  /// What would be decided for this request, e.g. of POST /v1/route; or why it cannot be routed.
  tl::expected<schema::DecisionRecord, Misfit> would_decide(const net::Request& request);

 private:
  friend class Exchange;
  void on_request(net::ResponseWriterPtr writer) override;
  void on_refused(int status, std::string_view reason) override;
  void route(net::ResponseWriterPtr writer, std::shared_ptr<ApiKeyState> key);
  void refuse_stranger(net::ResponseWriter& writer, bool has_key);
  void refuse_share(net::ResponseWriter& writer, const ApiKeyState& key, const Grant& grant);
  void list_models(net::ResponseWriter& writer) const;
  void show_model(net::ResponseWriter& writer, std::string_view name) const;
  void answer_options(net::ResponseWriter& writer) const;
  void add_request_id(net::ResponseWriter& writer);

  void place_freed();
  void pump();
  Meter& meter_of(const Reading& reading);
  void take(std::unique_ptr<Exchange> exchange, routing::Ticket ticket);
  void end(Exchange& exchange);
  void stop_taking();
  void end_grace();
  void check_drained();

  net::Loop& loop_;
  GatewayOptions options_;
  routing::Dispatcher dispatcher_;
  RequestReader reader_;
  Cors cors_;
  std::shared_ptr<const ApiKeyTable> api_keys_;
  Engines engines_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;  ///< by Ticket::slot
  std::shared_ptr<const std::string> snapshot_text_;  ///< for x-signalbox-snapshot
  ContinuationMemory continuations_;
  GatewayCounters counters_;
  std::map<EngineName, routing::EngineProblem> problems_;
  Meters meters_;
  tracing::Sampler sampler_;
  std::vector<tracing::Trace> ended_traces_;
  std::uint64_t forgotten_traces_ = 0;
  std::uint64_t own_answers_ = 0;  ///< without a decision's id
  net::Timer wake_;
  net::Timer handed_over_;
  net::Timer grace_;
  net::Timer drained_;
  std::function<void()> on_drained_;
  net::HttpServer server_;
};

}  // namespace signalbox::gateway
