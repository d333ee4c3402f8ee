#include "actors/operator/server.hpp"

#include <array>
#include <thread>

#include "actors/cluster_router/net/server.hpp"
#include "actors/operator/metrics.hpp"

namespace signalbox::operators {

namespace {

constexpr int ok = 200, unavailable = 503, not_found = 404;

void answer(net::ResponseWriter& writer, int status, std::string_view type, std::string_view body) {
  const std::array fields{http::Field{"content-type", type}};
  writer.respond(status, fields, body);
}

}  // namespace

class Server::State : public net::HttpHandler {
 public:
  explicit State(const kit::Process& process) : process_(process), server_(loop_, *this, {}) {}
  ~State() override {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status listen(const std::string& address) {
    const auto resolved = net::resolve_url(address);
    if (!resolved) return tl::unexpected(resolved.error());
    // A router and its successor run side by side for a while.
    const bool share_port = process_.options().role == Role::cluster_router;
    if (auto listening = server_.listen(*resolved, share_port); !listening) return listening;
    thread_ = std::thread([this] { loop_.run(); });
    return {};
  }

  void on_request(net::ResponseWriterPtr writer) override {
    const auto& head = writer->request().head;
    const std::string path(head.path());
    if (path == "/healthz") return answer(*writer, ok, "text/plain", "alive\n");
    if (path == "/readyz") {
      if (process_.stopping()) return answer(*writer, unavailable, "text/plain", "stopping\n");
      const kit::Standing standing = process_.board().merged();
      return answer(*writer, standing.ready ? ok : unavailable, "text/plain", standing.state + "\n");
    }
    if (path == "/metrics")
      return answer(*writer, ok, "text/plain; version=0.0.4; charset=utf-8", metrics_of(process_));
    for (const kit::OperatorPage& page : process_.pages()) {
      if (page.method != head.method || !path.starts_with(page.path)) continue;
      kit::OperatorRequest asked{path.substr(page.path.size()), {}, writer->request().body};
      for (const http::Field& field : head.fields) asked.fields.emplace_back(field.name, field.value);
      const kit::OperatorAnswer got = page.serve(asked);
      return answer(*writer, got.status, got.content_type, got.body);
    }
    answer(*writer, not_found, "text/plain", "there is nothing here; try /healthz, /readyz or /metrics\n");
  }

 private:
  const kit::Process& process_;
  net::Loop loop_;
  net::HttpServer server_;
  std::thread thread_;
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const std::string& listen, const kit::Process& process) {
  auto state = std::make_unique<State>(process);
  if (const auto listening = state->listen(listen); !listening) return tl::unexpected(listening.error());
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

}  // namespace signalbox::operators
