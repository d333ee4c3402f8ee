#include "tools/fleet_view/status.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace signalbox::fleet_view {
namespace {

/// Routers that were not heard for this long are not there any more.
constexpr Duration report_lifetime = 10s;

std::string joined(const std::vector<ModelName>& models) {
  std::string out;
  for (const ModelName& model : models) out += (out.empty() ? "" : ",") + model.str();
  return out;
}

/// Rows of a table, newest names first: other tables' rows are translated by name.
class Places {
 public:
  Places(const FleetView& view, const schema::FleetTable& table) : view_(view), table_(table) {
    for (std::size_t i = 0; i < table.engines.size(); ++i) by_name_.emplace(table.engines[i].name, i);
  }
  /// The place in the newest table of a row of the table with this hash.
  std::optional<std::size_t> operator()(const Digest& content, EngineIndex row) const {
    if (!row.valid()) return std::nullopt;
    if (content == table_.content)
      return row.at() < table_.engines.size() ? std::optional(row.at()) : std::nullopt;
    const schema::FleetTable* other = view_.table(content);
    if (other == nullptr || row.at() >= other->engines.size()) return std::nullopt;
    const auto found = by_name_.find(other->engines[row.at()].name);
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  const FleetView& view_;
  const schema::FleetTable& table_;
  std::map<EngineName, std::size_t> by_name_;
};

struct Sums {
  double succeeded = 0, latency = 0, first_bytes = 0, first_byte = 0, failed = 0, inflight = 0, seconds = 0;
};

double failures_of(const schema::OutcomeRow& row) {
  return static_cast<double>(row.connect_errors + row.resets + row.timeouts + row.server_errors +
                             row.broken_streams);
}

bool is_current(Duration age) { return age < report_lifetime; }

void add_plan(const FleetView& view, const Places& place, std::vector<EngineStatus>& out) {
  double all = 0;
  std::vector<double> requests(out.size());
  for (const auto& [cluster, heard] : view.snapshots) {
    const schema::RoutingSnapshot& snapshot = heard.message;
    std::map<ClassIndex, double> rates;
    for (const schema::AdmitRow& row : snapshot.admits) {
      rates[row.request_class] = row.planned_rps * row.admit;
      all += row.planned_rps * row.admit;
    }
    for (const schema::WeightRow& row : snapshot.weights) {
      const auto at = place(snapshot.table, row.engine);
      if (!at) continue;
      out[*at].planned_inflight += row.planned_inflight;
      const auto rate = rates.find(row.request_class);
      if (rate != rates.end()) requests[*at] += row.weight * rate->second;
    }
    for (const schema::PriceRow& row : snapshot.prices)
      if (const auto at = place(snapshot.table, row.engine)) {
        out[*at].planned_load = row.planned_load, out[*at].capacity = row.capacity;
        out[*at].price = row.price, out[*at].binding = row.binding;
      }
  }
  if (all > 0)
    for (std::size_t i = 0; i < out.size(); ++i) out[i].planned_share = requests[i] / all;
}

void add_outcomes(const FleetView& view, const Places& place, Instant now, std::vector<EngineStatus>& out) {
  std::vector<Sums> sums(out.size());
  for (const auto& [router, heard] : view.outcomes) {
    if (!is_current(heard.age(now))) continue;
    const double seconds = to_seconds(heard.message.period);
    for (const schema::OutcomeRow& row : heard.message.engines) {
      const auto at = place(heard.message.table, row.engine);
      if (!at) continue;
      Sums& sum = sums[*at];
      sum.inflight += row.inflight;
      if (seconds <= 0) continue;
      sum.succeeded += static_cast<double>(row.succeeded), sum.latency += row.latency_sum_s;
      sum.first_bytes += static_cast<double>(row.first_bytes), sum.first_byte += row.first_byte_sum_s;
      sum.failed += failures_of(row);
      sum.seconds = std::max(sum.seconds, seconds);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Sums& sum = sums[i];
    out[i].inflight = sum.inflight;
    if (sum.seconds > 0)
      out[i].served_rps = sum.succeeded / sum.seconds, out[i].failed_rps = sum.failed / sum.seconds;
    if (sum.succeeded > 0) out[i].latency_s = sum.latency / sum.succeeded;
    if (sum.first_bytes > 0) out[i].first_byte_s = sum.first_byte / sum.first_bytes;
  }
}

void add_health(const FleetView& view, Instant now, EngineStatus& out) {
  const auto* verdict = view.verdict(out.name);
  if (verdict != nullptr) {
    out.state = verdict->message.state;
    out.evidence = name_of(verdict->message.evidence);
    out.since_s = to_seconds(verdict->message.since + verdict->age(now));
    out.capacity_factor = verdict->message.capacity_factor;
  }
  const auto heard = view.signals.find(out.name);
  if (heard == view.signals.end()) return;
  const schema::EngineSignal& signal = heard->second.message;
  out.running = signal.running, out.waiting = signal.waiting, out.kv_usage = signal.kv_usage;
  out.tpot_s = signal.tpot_s, out.slowness = signal.slowness;
  out.signal_age_s = to_seconds(heard->second.age(now) + signal.reading_age);
}

bool serves(const EngineStatus& engine) {
  return engine.state == HealthState::ready || engine.state == HealthState::degraded ||
         engine.state == HealthState::starting;
}

}  // namespace

std::vector<EngineStatus> engine_statuses(const FleetView& view, Instant now) {
  const schema::FleetTable* table = view.newest_table();
  if (table == nullptr) return {};
  std::vector<EngineStatus> out(table->engines.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const schema::EngineRow& row = table->engines[i];
    out[i].name = row.name;
    if (row.cluster.valid() && row.cluster.at() < table->clusters.size())
      out[i].cluster = table->clusters[row.cluster.at()].name;
    out[i].models = joined(row.models);
    add_health(view, now, out[i]);
  }
  const Places place(view, *table);
  add_plan(view, place, out);
  add_outcomes(view, place, now, out);
  return out;
}

std::vector<DemandStatus> demand_statuses(const FleetView& view) {
  std::map<std::pair<ClusterName, std::string>, DemandStatus> rows;
  const auto row_of = [&](const ClusterName& cluster, std::string request_class) -> DemandStatus& {
    DemandStatus& row = rows[{cluster, request_class}];
    row.cluster = cluster;
    row.request_class = std::move(request_class);
    return row;
  };
  for (const auto& [router, heard] : view.demands) {
    const schema::DemandReport& report = heard.message;
    const double seconds = to_seconds(report.period);
    if (seconds <= 0) continue;
    const auto rate = [&](std::uint64_t count) { return static_cast<double>(count) / seconds; };
    for (const schema::DemandRow& demand : report.rows) {
      DemandStatus& row = row_of(report.cluster, view.class_name(report.policy, demand.request_class));
      row.offered_rps += rate(demand.offered), row.admitted_rps += rate(demand.admitted);
      row.shed_rps += rate(demand.shed), row.finished_rps += rate(demand.finished);
      row.prompt_tokens_s += rate(demand.prompt_tokens), row.cached_tokens_s += rate(demand.cached_tokens);
      row.output_tokens_s += rate(demand.output_tokens);
    }
  }
  for (const auto& [cluster, heard] : view.snapshots)
    for (const schema::AdmitRow& admit : heard.message.admits) {
      DemandStatus& row = row_of(cluster, view.class_name(heard.message.policy, admit.request_class));
      row.admit = admit.admit;
      row.planned_rps = admit.planned_rps;
    }
  std::vector<DemandStatus> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  return out;
}

FleetStatus fleet_status(const FleetView& view, Instant now) {
  FleetStatus out;
  double served = 0, latency = 0, first_byte = 0;
  for (const EngineStatus& engine : engine_statuses(view, now)) {
    ++out.engines;
    out.serving += serves(engine) ? 1 : 0;
    out.gone += engine.state == HealthState::gone ? 1 : 0;
    out.inflight += engine.inflight;
    if (!engine.latency_s || engine.served_rps <= 0) continue;
    served += engine.served_rps;
    latency += engine.served_rps * *engine.latency_s;
    first_byte += engine.served_rps * engine.first_byte_s.value_or(0);
  }
  if (served > 0) out.latency_s = latency / served, out.first_byte_s = first_byte / served;
  for (const DemandStatus& demand : demand_statuses(view))
    out.offered_rps += demand.offered_rps, out.shed_rps += demand.shed_rps;
  if (const auto* leader = view.leader()) {
    out.leader = leader->message.id;
    out.term = leader->message.term.counter;
    const auto alive = view.keep_alives.find(out.leader);
    out.holding = alive != view.keep_alives.end() && alive->second.message.holding;
  }
  for (const auto& [cluster, snapshot] : view.snapshots) {
    const double age = to_seconds(snapshot.age(now));
    out.plan_age_s = out.plan_age_s ? std::max(*out.plan_age_s, age) : age;
    out.gap = std::max(out.gap.value_or(0), snapshot.message.gap);
  }
  for (const auto& [name, alert] : view.alerts)
    out.alerts += alert.age(now) <= schema::Alert::info.keep ? 1 : 0;  // others' authors speak no more
  return out;
}

}  // namespace signalbox::fleet_view
