#include "actors/operator/server.hpp"

#include <fmt/format.h>

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
  explicit State(Subject subject) : subject_(std::move(subject)), server_(loop_, *this, {}) {}
  ~State() override {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status listen(const std::string& address) {
    const auto resolved = net::resolve_url(address);
    if (!resolved) return tl::unexpected(resolved.error());
    if (auto listening = server_.listen(*resolved, subject_.share_port); !listening) return listening;
    thread_ = std::thread([this] { loop_.run(); });
    return {};
  }

  void on_request(net::ResponseWriterPtr writer) override {
    const auto& head = writer->request().head;
    const std::string path(head.path());
    if (path == "/healthz") return answer(*writer, ok, "text/plain", "alive\n");
    if (path == "/readyz") {
      const kit::Standing standing = subject_.standing();
      return answer(*writer, standing.ready ? ok : unavailable, "text/plain", standing.state + "\n");
    }
    if (path == "/metrics")
      return answer(*writer, ok, "text/plain; version=0.0.4; charset=utf-8", subject_.metrics());
    for (const kit::OperatorPage& page : subject_.pages) {
      if (page.method != head.method || !path.starts_with(page.path)) continue;
      kit::OperatorRequest asked{path.substr(page.path.size()), {}, writer->request().body};
      for (const http::Field& field : head.fields) asked.fields.emplace_back(field.name, field.value);
      const kit::OperatorAnswer got = page.serve(asked);
      return answer(*writer, got.status, got.content_type, got.body);
    }
    std::string others;
    for (const kit::OperatorPage& page : subject_.pages)
      others += fmt::format(", {} {}", page.method, page.path);
    answer(*writer, not_found, "text/plain",
           fmt::format("there is nothing here; there are /healthz, /readyz, /metrics{}\n", others));
  }

 private:
  const Subject subject_;
  net::Loop loop_;
  net::HttpServer server_;
  std::thread thread_;
};

Subject subject_of(const kit::Process& process) {
  const auto standing = [&process] {
    kit::Standing now = process.board().merged();
    if (process.stopping()) now.ready = false, now.state = "stopping";
    return now;
  };
  return {standing, [&process] { return metrics_of(process); }, process.pages(),
          process.options().role == Role::cluster_router};
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const std::string& listen, Subject subject) {
  auto state = std::make_unique<State>(std::move(subject));
  if (const auto listening = state->listen(listen); !listening) return tl::unexpected(listening.error());
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

}  // namespace signalbox::operators
