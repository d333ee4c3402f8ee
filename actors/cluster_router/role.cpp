#include "actors/cluster_router/role.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <thread>

#include "actors/cluster_router/gateway/gateways.hpp"
#include "actors/cluster_router/machine/machine.hpp"
#include "actors/cluster_router/metrics.hpp"
#include "actors/cluster_router/net/port_claim.hpp"
#include "actors/cluster_router/pages.hpp"
#include "actors/cluster_router/pump.hpp"
#include "actors/cluster_router/record_clerk.hpp"
#include "actors/cluster_router/trace_exporter.hpp"
#include "actors/kit/fleet/table.hpp"
#include "cluster-config/load/load.hpp"
#include "cluster-config/schema/api_keys.hpp"

namespace signalbox::cluster_router {

namespace {

constexpr Duration batch_period = 250ms, pump_period = 50ms;

std::uint32_t loops_of(const kit::Process& process) {
  const std::uint32_t wanted = process.config().router.loops;
  return wanted != 0 ? wanted : gateway::loops_for(std::thread::hardware_concurrency());
}

/// Keys the hashes of prompts: the same in all routers of a fleet, unknown outside.
std::uint64_t fleet_secret(const kit::Process& process) {
  if (!process.keyring()) return digest_of(process.config().fleet).fingerprint();
  return digest_of(std::span<const std::uint8_t>(process.keyring()->fleet_mac)).fingerprint();
}

gateway::GatewayThreadOptions gateway_options(const kit::Process& process, const net::Address& listen) {
  const config::Router& router = process.config().router;
  gateway::GatewayThreadOptions out;
  out.listen = listen;
  out.share_port = true;  // with its successor, when the router is restarted without a gap
  out.batch_period = batch_period;
  out.gateway.dispatcher.cluster = process.cluster();
  out.gateway.dispatcher.router = process.id();
  out.gateway.dispatcher.incarnation = process.incarnation();
  out.gateway.dispatcher.seed = process.incarnation().random;
  out.gateway.dispatcher.records = router.recent_decisions;
  out.gateway.dispatcher.file_records = true;
  out.gateway.dispatcher.published_per_s = router.published;
  out.gateway.server.max_body_bytes = static_cast<std::size_t>(router.body_limit_mib) << 20;
  out.gateway.server.max_connections = router.connections;
  out.gateway.server.head_timeout = router.head_timeout;
  out.gateway.server.body_timeout = router.body_timeout;
  out.gateway.server.idle_timeout = router.idle_timeout;
  out.gateway.server.stall_timeout = router.stall_timeout;
  const config::Traces& traces = process.config().traces;
  out.gateway.traces = {!traces.endpoint.empty(), traces.share, traces.limit};
  out.gateway.continuation_bytes = static_cast<std::size_t>(router.continuation_mib) << 20;
  out.gateway.cors_origins = router.cors_origins;
  out.gateway.reader.max_body_bytes = out.gateway.server.max_body_bytes;
  out.gateway.reader.fleet_secret = fleet_secret(process);
  return out;
}

/// Each loop keeps idle connections of its own, within its share of what the engine bears.
gateway::EngineAccessMap access_of(const config::Config& config, std::uint32_t loops) {
  gateway::EngineAccessMap out;
  for (const auto& engine : config.engines) {
    out[engine.name].connections = std::max<std::uint32_t>(1, engine.connections / loops);
    out[engine.name].tls_authorities = engine.tls_authorities;
    if (!engine.api_key_file.empty()) out[engine.name].authorization = "";  // until the file is read
  }
  return out;
}

/// What the actor and the operators' pages share. The gateway outlives the actor: it serves on when that is gone.
class Front {
 public:
  Front(const kit::Process& process, gateway::GatewayThreadOptions options)
      : process_(process),
        access_(access_of(process.config(), loops_of(process))),
        clerk_(process.state().path() + "/" + std::string(RecordFile::name),
               process.config().router.decisions),
        gateway_(std::move(options), loops_of(process)) {}

  gateway::Gateways& gateways() { return gateway_; }
  RecordClerk& clerk() { return clerk_; }
  /// Files the decisions that were made since.
  std::optional<DecisionsKept> file_decisions() {
    return clerk_.turn(gateway_.filed(), kit::unix_offset(), kit::monotonic_now());
  }

  /// In the actor.
  void swap(const SwapView& swap) {
    const std::lock_guard lock(publishing_);
    if (!view_ || view_->table->content != swap.view->table->content) open_doors(*swap.view->table);
    view_ = swap.view;
    clerk_.know(view_);
    gateway_.publish({view_, doors_});
  }
  /// Resolves the engines, and reads their authorities and keys, anew: also while no new view comes.
  void reload_doors() {
    const std::lock_guard lock(publishing_);
    if (!view_) return;  // the first one opens them
    open_doors(*view_->table);
    gateway_.publish({view_, doors_});
  }

  /// Reads who may ask; who could before still can after an error.
  Status load_api_keys() {
    const std::string& file = process_.config().router.api_keys;
    if (file.empty()) return {};
    constexpr std::size_t most_bytes = 64u << 20;
    const auto text = config::read_text_file(file, most_bytes);
    if (!text) return tl::unexpected(text.error());
    const auto parsed = config::parse_api_keys(*text);
    if (!parsed.keys)
      return invalid(config::render(parsed.mistakes, file), file, "the API keys in force stay");
    api_keys_ = gateway::ApiKeyTable::build(*parsed.keys, api_keys_.get());
    process_.log(schema::Severity::info, "api_keys", fmt::format("{}: {} keys", file, api_keys_->size()));
    gateway_.use_api_keys(api_keys_);
    return {};
  }

  /// Reads what clients are shown; what was shown before stays after an error.
  Status load_certificate() {
    const config::Router& router = process_.config().router;
    if (router.tls_certificate.empty()) return {};
    auto tls = net::TlsServer::load(router.tls_certificate, router.tls_key);
    if (!tls) return tl::unexpected(tls.error());
    const net::CertificateFacts& shown = (*tls)->certificate();
    process_.log(shown.outside_its_time ? schema::Severity::critical : schema::Severity::info,
                 "tls_certificate",
                 fmt::format("{}: {}, SHA-256 {}{}", router.tls_certificate, shown.subject, shown.sha256,
                             shown.outside_its_time ? ", outside the time that it is valid for" : ""));
    gateway_.use_tls(*std::move(tls));
    return {};
  }

  /// Its ports are its own and its successor's.
  Status claim(const std::vector<std::string>& addresses) {
    const config::Config& config = process_.config();
    for (const std::string& address : addresses) {
      if (address.empty()) continue;
      const auto resolved = net::resolve_url(address);
      if (!resolved) return tl::unexpected(resolved.error());
      auto claim = net::PortClaim::make(
          *resolved, fmt::format("{} {} {}", config.fleet, config.state_dir, process_.id()));
      if (!claim) return tl::unexpected(claim.error());
      claims_.push_back(*std::move(claim));
    }
    return {};
  }

  /// Finishes what is open, for `grace` at most.
  void drain(Duration grace) {
    auto done = std::make_shared<std::promise<void>>();
    auto drained = done->get_future();
    gateway_.drain(grace, [done] { done->set_value(); });
    drained.wait_for(grace + question_limit);
  }

 private:
  /// A key that cannot be read stays what it was: at first none, and then the engine is asked without one.
  void read_engine_keys() {
    for (const config::Engine& engine : process_.config().engines) {
      if (engine.api_key_file.empty()) continue;
      if (const auto key = config::read_secret_line(engine.api_key_file))
        access_[engine.name].authorization = "Bearer " + *key;
      else
        process_.log(schema::Severity::critical, "engine_key_not_read", key.error().text());
    }
  }

  void open_doors(const schema::FleetTable& table) {
    read_engine_keys();
    doors_ = gateway::build_address_book(table, access_);
    for (const gateway::EngineDoor& door : *doors_)
      if (!door.problem.empty())
        process_.log(schema::Severity::critical, "engine_unreachable",
                     fmt::format("{}: {}", door.name, door.problem));
  }

  const kit::Process& process_;
  std::mutex publishing_;  ///< the actor's views and reloads come from two threads
  gateway::EngineAccessMap access_;
  std::shared_ptr<const gateway::ApiKeyTable> api_keys_;
  std::shared_ptr<const gateway::AddressBook> doors_;
  std::shared_ptr<const routing::View> view_;  ///< as published last
  RecordClerk clerk_;
  std::vector<net::PortClaim> claims_;
  gateway::Gateways gateway_;
};

std::string metrics(Front& front, const std::string& fleet) {
  gateway::Gateways& gateways = front.gateways();
  const auto each = gateways.ask_all([](gateway::Gateway& g) { return read_out(g); }, question_limit);
  if (!each) return {};
  FilingCounts filing{front.clerk().filed(), front.clerk().lost()};
  for (const auto* queue : gateways.filed()) filing.lost += queue->dropped();
  return metrics_text(summed(*each), fleet, gateways.late_batches(), filing);
}

/// Null if no traces are made.
std::shared_ptr<TraceExporter> exporter_of(kit::Process& process) {
  const config::Traces& traces = process.config().traces;
  if (traces.endpoint.empty()) return nullptr;
  TraceExporterOptions out;
  out.endpoint = traces.endpoint;
  out.token_file = traces.token_file;
  out.resource = {process.config().fleet, process.cluster(), process.id()};
  out.log = [&process](schema::Severity severity, std::string_view event, const std::string& text) {
    process.log(severity, event, text);
  };
  return std::make_shared<TraceExporter>(std::move(out));
}

Options machine_options(const kit::Process& process) {
  Options out;
  out.id = process.id();
  out.cluster = process.cluster();
  out.incarnation = process.incarnation();
  out.loops = loops_of(process);
  out.epoch = process.config().fleet_epoch;
  out.table = kit::fleet_table(process.config());
  out.kept = {process.state().read(Machine::policy_name), process.state().read(Machine::table_name),
              process.state().read(Machine::snapshot_name)};
  out.report = process.config().intervals.report;
  out.share = process.config().intervals.share;
  return out;
}

/// Everything that its role hears, but of the snapshots only its cluster's.
std::vector<std::string> prefixes(const kit::Process& process) {
  std::vector<std::string> out = kit::Process::heard_by(Machine::role_info());
  for (auto& prefix : out)
    if (prefix == schema::topic_root(schema::RoutingSnapshot::info)) prefix += process.cluster().str() + "/";
  return out;
}

}  // namespace

Status start(kit::Process& process) {
  const config::Process* row = process.config().find_process(process.id());
  const auto listen = net::resolve_url(row->listen);
  if (!listen) return tl::unexpected(listen.error());
  gateway::GatewayThreadOptions served = gateway_options(process, *listen);
  served.gateway.on_open = [&process, where = listen->text()] {
    process.log(schema::Severity::info, "accepting", "clients at " + where);
  };
  auto front = std::make_shared<Front>(process, std::move(served));
  if (const auto shown = front->load_certificate(); !shown) return shown;
  if (const auto known = front->load_api_keys(); !known) return known;
  if (const auto ours = front->claim({row->listen, row->operator_listen}); !ours) return ours;
  if (const auto listening = front->gateways().start(); !listening) return listening;
  const auto teller = process.host<Machine>(
      "cluster-router",
      [&process, where = listen->text()] {
        Options options = machine_options(process);
        options.gateway = {true, where};
        return Machine(std::move(options));
      },
      [front](const SwapView& swap, const auto&) { front->swap(swap); }, prefixes(process));
  const auto exporter = exporter_of(process);
  auto pump = std::make_shared<Pump>(pump_period, [front, teller, exporter] {
    while (auto batch = front->gateways().take_batch()) teller(BatchIn{*std::move(batch)});
    if (auto kept = front->file_decisions()) teller(*std::move(kept));
    if (exporter)
      while (auto trace = front->gateways().take_trace()) exporter->take(*std::move(trace));
  });
  process.watch_loop([front] { return front->gateways().last_turn(); });
  add_pages(process, std::shared_ptr<gateway::Gateways>(front, &front->gateways()), front->clerk().path());
  process.add_metrics([front, fleet = process.config().fleet] { return metrics(*front, fleet); });
  process.add_metrics([front, exporter] {
    return trace_metrics_text(exporter ? exporter->counters() : tracing::OutboxCounters{},
                              front->gateways().dropped_traces());
  });
  process.on_reload([&process, front] {
    front->reload_doors();
    if (const auto shown = front->load_certificate(); !shown)
      process.log(schema::Severity::critical, "tls_not_reloaded", shown.error().text());
    if (const auto known = front->load_api_keys(); !known)
      process.log(schema::Severity::critical, "api_keys_not_reloaded", known.error().text());
  });
  process.on_stop([front, pump, exporter, grace = process.config().router.drain_grace]() mutable {
    front->drain(grace);
    pump.reset();
    if (exporter) exporter->stop();
  });
  return {};
}

}  // namespace signalbox::cluster_router
