// The engine stand-in: the batching machine behind OpenAI's HTTP interface, on one event loop.
//
//     POST /v1/...  --> ask --> submit --> [machine, woken by a timer] --> events --> session --> chunks or one answer
//
// A session is one request that the machine holds; it ends with the machine's finished event, with its client, or by an
// injected fault.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/cluster_router/net/server.hpp"
#include "messages/base/rng.hpp"
#include "tools/engine_sim/api/answer.hpp"
#include "tools/engine_sim/api/ask.hpp"
#include "tools/engine_sim/api/faults.hpp"
#include "tools/engine_sim/kv_publisher.hpp"
#include "tools/engine_sim/machine/engine.hpp"

namespace signalbox::engine_sim {

struct ServerOptions {
  std::string name = "engine-sim";
  std::vector<std::string> models;  ///< at least one; the first labels the metrics
  EngineOptions engine;
  std::uint64_t seed = 1;
  double time_scale = 1;  ///< engine seconds in a second of the clock
  KvOptions kv;
  std::uint32_t output_tokens = 128;  ///< of an answer that the client does not cut shorter
};

class EngineServer final : public net::HttpHandler {
 public:
  EngineServer(net::Loop& loop, ServerOptions options);
  ~EngineServer() override;
  /// Begins to publish KV events, if it shall. Errors: io.
  Status publish_kv_events();

  void on_request(net::ResponseWriterPtr writer) override;
  const Engine& engine() const { return engine_; }

 private:
  class Session;
  using Path = std::string_view;

  void serve_admin(net::ResponseWriter& writer);
  bool fails_by_fault(net::ResponseWriterPtr& writer);
  void reset_prefix_cache(net::ResponseWriter& writer);
  void serve_page(net::ResponseWriter& writer, Path path);
  void serve_inference(net::ResponseWriterPtr writer, Endpoint endpoint);
  void submit(net::ResponseWriterPtr writer, Ask ask);
  void refuse(net::ResponseWriter& writer, Admission why);

  void advance();
  void arm();
  void tell(const Event& event);
  void end(Session& session);
  void client_gone(Session& session);
  void hold(net::ResponseWriterPtr writer);
  bool serves(std::string_view model) const;
  Instant engine_now() const;

  net::Loop& loop_;
  ServerOptions options_;
  Engine engine_;
  InjectedFaults faults_;
  KvPublisher kv_;
  Rng rng_;
  net::Timer timer_;
  Instant started_;
  double started_wall_s_;
  RequestId next_id_ = 1;
  std::unordered_map<RequestId, std::unique_ptr<Session>> sessions_;
  std::vector<Event> events_;
};

}  // namespace signalbox::engine_sim
