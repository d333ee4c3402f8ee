#include "tools/exporter/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "actors/cluster_router/net/client.hpp"
#include "actors/cluster_router/net/endpoints.hpp"
#include "actors/cluster_router/net/serving.hpp"
#include "tools/cli/exit.hpp"
#include "tools/cli/feed.hpp"
#include "tools/fleet_view/fleet_metrics.hpp"

namespace signalbox::exporter {
namespace {

struct Options {
  cli::SourceOptions source;
  std::string listen = "127.0.0.1:9464";
};

Status serve(const Options& options) {
  auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(std::move(source.error()));
  const auto address = net::resolve_url(options.listen);
  if (!address) return tl::unexpected(address.error());
  cli::FeedOptions how;
  how.subscriptions = {"beat/",  "signal/", "verdict/", "fleet/",  "snapshot/",
                       "alive/", "demand/", "outcome/", "policy/", "alert/"};
  auto feed = cli::Feed::start(std::move(*source), std::move(how));
  if (!feed) return tl::unexpected(std::move(feed.error()));
  net::Loop loop;
  net::Endpoints pages;
  pages.get("/metrics", [&](const net::Request&, std::string_view) {
    return net::Answer{
        200, "text/plain; version=0.0.4; charset=utf-8",
        (*feed)->with([](const auto& view, const auto&, Instant now) { return fleet_metrics(view, now); })};
  });
  pages.get("/healthz", [](const net::Request&, std::string_view) {
    return net::Answer{200, "text/plain; charset=utf-8", "ok\n"};
  });
  net::HttpServer server(loop, pages, {});
  if (const Status listening = server.listen(*address); !listening) return listening;
  const net::StopOnSignal stops(loop);
  fmt::print("http://{}/metrics\n", net::listening_at(*address, server));
  std::fflush(stdout);
  loop.run();
  return {};
}

}  // namespace

void add_exporter(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("exporter", "The fleet's state for Prometheus: engines, demand, plans, alerts");
  command.footer(
      "Each process tells of itself at /metrics of its operators' port; this tells what only the bus knows. "
      "docs/metrics.md and docs/fleet-metrics.md list them.\n\n"
      "Examples:\n"
      "  signalbox exporter\n"
      "  signalbox exporter --listen 127.0.0.1:0");
  auto options = std::make_shared<Options>();
  cli::add_source_options(command, options->source);
  command.add_option("--listen", options->listen, "host:port; port 0 takes a free one, printed on stdout")
      ->capture_default_str();
  command.callback([options] { cli::finish("exporter", serve(*options)); });
}

}  // namespace signalbox::exporter
