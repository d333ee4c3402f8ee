#include "tools/fleet_view/fleet_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tools/fleet_view/status.hpp"

namespace signalbox::fleet_view {

const std::array<FleetMetric, 32> fleet_metric_list{{
    {"signalbox_engine_state", "engine,cluster,state",
     "1 for the state that the health-monitor sees the engine in, else 0."},
    {"signalbox_engine_running", "engine,cluster", "Requests in the engine's batch."},
    {"signalbox_engine_waiting", "engine,cluster", "Requests that wait at the engine."},
    {"signalbox_engine_kv_usage_ratio", "engine,cluster", "Share of its KV memory in use."},
    {"signalbox_engine_slowness_ratio", "engine,cluster", "Measured over declared time per output token."},
    {"signalbox_engine_signal_age_seconds", "engine,cluster", "Age of its last signal."},
    {"signalbox_engine_planned_load", "engine,cluster", "Engine time a second that the plan gives it."},
    {"signalbox_engine_capacity", "engine,cluster", "Engine time a second that may be planned."},
    {"signalbox_engine_price", "engine,cluster", "Marginal cost of a second of its time."},
    {"signalbox_engine_planned_share_ratio", "engine,cluster", "Its part of all planned requests."},
    {"signalbox_engine_latency_seconds", "engine,cluster", "Mean end-to-end time of the latest reports."},
    {"signalbox_engine_first_byte_seconds", "engine,cluster",
     "Mean time to the first byte of the latest reports."},
    {"signalbox_engine_served_per_second", "engine,cluster",
     "Requests served, by the routers' latest reports."},
    {"signalbox_engine_failed_per_second", "engine,cluster",
     "Attempts that failed, by the routers' latest reports."},
    {"signalbox_demand_offered_per_second", "cluster,class", "Requests that came, before admission."},
    {"signalbox_demand_shed_per_second", "cluster,class", "Of these, refused."},
    {"signalbox_demand_admit_ratio", "cluster,class", "Share that the plan admits."},
    {"signalbox_plan_age_seconds", "cluster", "Age of the snapshot in force."},
    {"signalbox_plan_gap_ratio", "cluster", "Relative distance of the plan from its lower bound."},
    {"signalbox_plan_objective", "cluster", "Expected cost of the plan."},
    {"signalbox_plan_held", "cluster", "1 where the snapshot is the last plan held on to, else 0."},
    {"signalbox_plan_version", "cluster", "Sequence of the snapshot in force."},
    {"signalbox_calibration_ratio", "optimizer",
     "End-to-end time of the last window's requests over what plans expected."},
    {"signalbox_calibration_headroom_ratio", "optimizer",
     "Share of the policy's load ceiling that plans use: less after three windows over 1.2."},
    {"signalbox_calibration_latency_ratio", "class,engine",
     "End-to-end time over what plans expected, by class and engine."},
    {"signalbox_calibration_first_byte_ratio", "class,engine",
     "Time to the first byte over what plans expected."},
    {"signalbox_calibration_load_ratio", "engine", "Engine time asked for over what plans expected."},
    {"signalbox_leaders", "", "Optimizers that say they lead."},
    {"signalbox_leader_term", "", "Counter of the leader's term."},
    {"signalbox_routers_behind", "cluster",
     "Routers that do not route by the newest snapshot of their cluster."},
    {"signalbox_processes_not_ready", "", "Processes that beat and are not ready."},
    {"signalbox_alert_raised", "alert,severity,owner,process", "1 for each alert that is raised, by whom."},
}};

namespace {

class Writer {
 public:
  /// The next metric of the list.
  void begin(std::string_view name) {
    const auto found = std::find_if(fleet_metric_list.begin(), fleet_metric_list.end(),
                                    [&](const auto& m) { return m.name == name; });
    name_ = name;
    out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name,
                        found == fleet_metric_list.end() ? "" : found->help);
  }
  void sample(std::string_view labels, const std::optional<double>& value) {
    if (!value || !std::isfinite(*value)) return;
    out_ += labels.empty() ? fmt::format("{} {:.9g}\n", name_, *value)
                           : fmt::format("{}{{{}}} {:.9g}\n", name_, labels, *value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  std::string_view name_;
};

std::string labels_of(const EngineStatus& engine) {
  return fmt::format("engine=\"{}\",cluster=\"{}\"", engine.name, engine.cluster);
}

void write_engines(const FleetView& view, Instant now, Writer& out) {
  const auto engines = engine_statuses(view, now);
  out.begin("signalbox_engine_state");
  for (const EngineStatus& engine : engines)
    for (std::size_t s = 0; engine.state && s < enum_size<HealthState>; ++s)
      out.sample(fmt::format("{},state=\"{}\"", labels_of(engine), name_of(static_cast<HealthState>(s))),
                 static_cast<std::size_t>(*engine.state) == s ? 1 : 0);
  const auto each = [&](std::string_view name, auto get) {
    out.begin(name);
    for (const EngineStatus& engine : engines) out.sample(labels_of(engine), get(engine));
  };
  using E = EngineStatus;
  using Value = std::optional<double>;
  each("signalbox_engine_running", [](const E& e) { return e.running; });
  each("signalbox_engine_waiting", [](const E& e) { return e.waiting; });
  each("signalbox_engine_kv_usage_ratio", [](const E& e) { return e.kv_usage; });
  each("signalbox_engine_slowness_ratio", [](const E& e) { return e.slowness; });
  each("signalbox_engine_signal_age_seconds", [](const E& e) { return e.signal_age_s; });
  each("signalbox_engine_planned_load", [](const E& e) { return e.planned_load; });
  each("signalbox_engine_capacity", [](const E& e) { return e.capacity; });
  each("signalbox_engine_price", [](const E& e) { return e.price; });
  each("signalbox_engine_planned_share_ratio", [](const E& e) { return Value(e.planned_share); });
  each("signalbox_engine_latency_seconds", [](const E& e) { return e.latency_s; });
  each("signalbox_engine_first_byte_seconds", [](const E& e) { return e.first_byte_s; });
  each("signalbox_engine_served_per_second", [](const E& e) { return Value(e.served_rps); });
  each("signalbox_engine_failed_per_second", [](const E& e) { return Value(e.failed_rps); });
}

void write_demand(const FleetView& view, Writer& out) {
  const auto demand = demand_statuses(view);
  const auto each = [&](std::string_view name, auto get) {
    out.begin(name);
    for (const DemandStatus& d : demand)
      out.sample(fmt::format("cluster=\"{}\",class=\"{}\"", d.cluster, d.request_class), get(d));
  };
  using Value = std::optional<double>;
  each("signalbox_demand_offered_per_second", [](const DemandStatus& d) { return Value(d.offered_rps); });
  each("signalbox_demand_shed_per_second", [](const DemandStatus& d) { return Value(d.shed_rps); });
  each("signalbox_demand_admit_ratio", [](const DemandStatus& d) { return d.admit; });
}

void write_plans(const FleetView& view, Instant now, Writer& out) {
  const auto each = [&](std::string_view name, auto get) {
    out.begin(name);
    for (const auto& [cluster, heard] : view.snapshots)
      out.sample(fmt::format("cluster=\"{}\"", cluster), get(heard));
  };
  using Plan = Heard<schema::RoutingSnapshot>;
  each("signalbox_plan_age_seconds",
       [&](const Plan& p) { return to_seconds(p.age(now) + p.message.as_of_age); });
  each("signalbox_plan_gap_ratio", [](const Plan& p) { return p.message.gap; });
  each("signalbox_plan_objective", [](const Plan& p) { return p.message.objective; });
  each("signalbox_plan_held",
       [](const Plan& p) { return p.message.kind == schema::PlanKind::hold ? 1.0 : 0.0; });
  each("signalbox_plan_version",
       [](const Plan& p) { return static_cast<double>(p.message.version.sequence); });
}

void write_calibration(const FleetView& view, Writer& out) {
  const auto ratio = [](double came, double expected) {
    return expected > 0 ? std::optional(came / expected) : std::nullopt;
  };
  out.begin("signalbox_calibration_ratio");
  for (const auto& [id, heard] : view.calibrations)
    out.sample(fmt::format("optimizer=\"{}\"", id), heard.message.ratio);
  out.begin("signalbox_calibration_headroom_ratio");
  for (const auto& [id, heard] : view.calibrations)
    out.sample(fmt::format("optimizer=\"{}\"", id), heard.message.headroom);
  // The rows of one optimizer: only the leader's plans are compared with anything.
  const auto newest =
      std::max_element(view.calibrations.begin(), view.calibrations.end(),
                       [](const auto& a, const auto& b) { return a.second.at < b.second.at; });
  const schema::Calibration none;
  const schema::Calibration& last = newest == view.calibrations.end() ? none : newest->second.message;
  const auto each = [&](std::string_view name, auto get) {
    out.begin(name);
    for (const schema::CalibrationRow& row : last.rows)
      out.sample(fmt::format("class=\"{}\",engine=\"{}\"", view.class_name(last.policy, row.request_class),
                             view.engine_name(last.table, row.engine)),
                 get(row));
  };
  each("signalbox_calibration_latency_ratio",
       [&](const auto& row) { return ratio(row.latency_s, row.expected_latency_s); });
  each("signalbox_calibration_first_byte_ratio",
       [&](const auto& row) { return ratio(row.first_byte_s, row.expected_first_byte_s); });
  out.begin("signalbox_calibration_load_ratio");
  for (const schema::CalibratedLoadRow& row : last.loads)
    out.sample(fmt::format("engine=\"{}\"", view.engine_name(last.table, row.engine)),
               ratio(row.load, row.expected_load));
}

void write_processes(const FleetView& view, Instant now, Writer& out) {
  double leaders = 0, not_ready = 0;
  for (const auto& [id, beat] : view.beats)
    leaders += beat.message.leads ? 1 : 0, not_ready += beat.message.ready ? 0 : 1;
  out.begin("signalbox_leaders");
  out.sample("", leaders);
  out.begin("signalbox_leader_term");
  if (const auto* leader = view.leader()) out.sample("", static_cast<double>(leader->message.term.counter));
  out.begin("signalbox_routers_behind");
  for (const auto& [cluster, plan] : view.snapshots) {
    double behind = 0;
    for (const auto& [id, beat] : view.beats)
      if (beat.message.role == Role::cluster_router && beat.message.cluster == cluster &&
          beat.message.snapshot.term.counter == plan.message.version.term.counter &&
          beat.message.snapshot.sequence + 3 < plan.message.version.sequence)
        ++behind;
    out.sample(fmt::format("cluster=\"{}\"", cluster), behind);
  }
  out.begin("signalbox_processes_not_ready");
  out.sample("", not_ready);
  out.begin("signalbox_alert_raised");
  for (const auto& [key, alert] : view.alerts)
    if (alert.age(now) <= schema::Alert::info.keep)
      out.sample(fmt::format("alert=\"{}\",severity=\"{}\",owner=\"{}\",process=\"{}\"", key.first,
                             name_of(alert.message.severity), alert.message.owner, key.second),
                 1);
}

}  // namespace

std::string fleet_metrics(const FleetView& view, Instant now) {
  Writer out;
  write_engines(view, now, out);
  write_demand(view, out);
  write_plans(view, now, out);
  write_calibration(view, out);
  write_processes(view, now, out);
  return out.take();
}

}  // namespace signalbox::fleet_view
