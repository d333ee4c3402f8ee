#include "cluster-config/schema/topology.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "messages/base/duration_text.hpp"

namespace signalbox::config {
namespace {

template <class Row, class Name>
const Row* find_row(const std::vector<Row>& rows, const Name& name, Name Row::*field) {
  const auto found = std::ranges::find(rows, name, field);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const Cluster* Config::find_cluster(const ClusterName& name) const {
  return find_row(clusters, name, &Cluster::name);
}
const Engine* Config::find_engine(const EngineName& name) const {
  return find_row(engines, name, &Engine::name);
}
const Process* Config::find_process(const ProcessName& id) const {
  return find_row(processes, id, &Process::id);
}
const Bus* Config::find_bus(const ProcessName& id) const { return find_row(buses, id, &Bus::id); }

Profile Config::declared_profile(const Engine& engine) const {
  Profile profile = profile_of(engine);
  for (double* time : {&profile.a, &profile.b, &profile.k, &profile.c}) *time /= engine.capacity_scale;
  return profile;
}

Duration Config::rtt(const ClusterName& from, const ClusterName& to, Duration absent) const {
  if (from == to) return Duration::zero();
  for (const Link& link : links)
    if (link.from == from && link.to == to) return link.rtt;
  return absent;
}

std::string summary(const Config& c) {
  std::string out;
  const auto put = [&out]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
  };
  put("fleet {} epoch {} security {} port_base {}", c.fleet, c.fleet_epoch, name_of(c.security), c.port_base);
  put("control {} period {} leader_timeout {} feedback {} {} {} solve {} {}", name_of(c.control.kind),
      duration_text(c.control.period), duration_text(c.control.leader_timeout), c.control.feedback_gain,
      c.control.feedback_smoothing, c.control.feedback_delay, c.control.solve_iterations,
      c.control.solve_memory_mib);
  put("coordination {} etcd {} lease {}", name_of(c.control.coordination), fmt::join(c.control.etcd, ","),
      duration_text(c.control.lease));
  put("intervals scrape {} beat {} report {} share {} keep_alive {} watchdog {}",
      duration_text(c.intervals.scrape), duration_text(c.intervals.beat), duration_text(c.intervals.report),
      duration_text(c.intervals.share), duration_text(c.intervals.keep_alive),
      duration_text(c.intervals.watchdog));
  const Router& r = c.router;
  put("router body_limit {} connections {} loops {} decisions {} {} continuation {} published {} drain_grace "
      "{} tls "
      "{} head {} body {} "
      "idle {} stall {} cors {} keys {}",
      r.body_limit_mib, r.connections, r.loops, r.decisions, r.recent_decisions, r.continuation_mib,
      r.published, duration_text(r.drain_grace), !r.tls_certificate.empty(), duration_text(r.head_timeout),
      duration_text(r.body_timeout), duration_text(r.idle_timeout), duration_text(r.stall_timeout),
      fmt::join(r.cors_origins, ","), !r.api_keys.empty());
  put("traces {} share {} limit {}", c.traces.endpoint, c.traces.share, c.traces.limit);
  for (const Cluster& row : c.clusters) put("cluster {} region {} zone {}", row.name, row.region, row.zone);
  for (const Link& row : c.links) put("link {} {} rtt {}", row.from, row.to, duration_text(row.rtt));
  for (const Profile& row : c.profiles)
    put("profile {} a {} b {} k {} c {} kv {} batch {} chunk {}", row.name, row.a, row.b, row.k, row.c,
        row.kv_tokens, row.max_batch, row.prefill_chunk);
  for (const Engine& row : c.engines) {
    std::string models;
    for (const ModelName& model : row.models) models += " " + model.str();
    put("engine {} cluster {} rack {} url {} kind {} profile {} scale {} metrics {} health {} connections {} "
        "models{}",
        row.name, row.cluster, row.rack, row.url, name_of(row.kind), row.profile, row.capacity_scale,
        row.metrics_path, row.health_path, row.connections, models);
    if (!row.kv_events.empty()) put("  kv_events {} {}", row.kv_events, row.kv_replay);
    if (!row.tls_identity.empty()) put("  tls {}", row.tls_identity);
    if (row.simulated)
      put("  simulated speed {} kv {} seed {}", row.simulated->speed, row.simulated->kv_tokens,
          row.simulated->seed);
  }
  for (const Bus& row : c.buses)
    put("bus {} {} {} operator {}", row.id, row.publish, row.subscribe, row.operator_listen);
  for (const Process& row : c.processes) {
    std::string engines;
    for (const EngineName& engine : row.engines) engines += " " + engine.str();
    put("process {} {} cluster {} listen {} operator {} engines{}", row.role, row.id, row.cluster, row.listen,
        row.operator_listen, engines);
  }
  return out;
}

std::string render(const std::vector<Mistake>& mistakes, std::string_view file) {
  std::string out;
  for (const Mistake& m : mistakes)
    out += fmt::format("{}:{}:{}: {}{}{}\n", file, m.place.line, m.place.column, m.what,
                       m.hint.empty() ? "" : "; ", m.hint);
  return out;
}

}  // namespace signalbox::config
