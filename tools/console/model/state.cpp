#include "tools/console/model/state.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "messages/base/json_text.hpp"
#include "tools/fleet_view/show.hpp"
#include "tools/fleet_view/status.hpp"

namespace signalbox::console {
namespace {

using fleet_view::EngineStatus;
using fleet_view::FleetView;

/// Flows to single engines are told for fleets up to this size; else those between clusters.
constexpr std::size_t most_flow_engines = 100;

std::string json_of(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{:.6g}", *value) : "null";
}

class Object {
 public:
  Object& raw(std::string_view key, std::string_view json) {
    out_ += fmt::format("{}\"{}\":{}", out_.size() > 1 ? "," : "", key, json);
    return *this;
  }
  Object& text(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
  Object& number(std::string_view key, std::optional<double> value) { return raw(key, json_of(value)); }
  Object& flag(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  std::string end() const { return out_ + "}"; }

 private:
  std::string out_ = "{";
};

template <class Items, class F>
std::string array_of(const Items& items, F&& json) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    out += json(item);
  }
  return out + "]";
}

template <DescribedEnum E>
std::string names_of() {
  std::string out = "[";
  for (const EnumRow& row : EnumTable<E>::rows)
    out += fmt::format("{}\"{}\"", out.size() > 1 ? "," : "", row.name);
  return out + "]";
}

std::string engines_json(const std::vector<EngineStatus>& engines) {
  Object out;
  const auto column = [&](std::string_view key, auto get) {
    out.raw(key, array_of(engines, [&](const EngineStatus& e) { return json_of(get(e)); }));
  };
  using Value = std::optional<double>;
  column("state",
         [](const EngineStatus& e) { return e.state ? Value(static_cast<double>(*e.state)) : Value(-1.0); });
  column("load", [](const EngineStatus& e) { return e.planned_load; });
  column("capacity", [](const EngineStatus& e) { return e.capacity; });
  column("price", [](const EngineStatus& e) { return e.price; });
  column("binding", [](const EngineStatus& e) { return Value(static_cast<double>(e.binding)); });
  column("share", [](const EngineStatus& e) { return Value(e.planned_share); });
  column("running", [](const EngineStatus& e) { return e.running; });
  column("waiting", [](const EngineStatus& e) { return e.waiting; });
  column("kv", [](const EngineStatus& e) { return e.kv_usage; });
  column("latency", [](const EngineStatus& e) { return e.latency_s; });
  column("ttft", [](const EngineStatus& e) { return e.first_byte_s; });
  column("tpot", [](const EngineStatus& e) { return e.tpot_s; });
  column("served", [](const EngineStatus& e) { return Value(e.served_rps); });
  column("failed", [](const EngineStatus& e) { return Value(e.failed_rps); });
  column("slowness", [](const EngineStatus& e) { return e.slowness; });
  column("inflight", [](const EngineStatus& e) { return Value(e.inflight); });
  column("age", [](const EngineStatus& e) { return e.signal_age_s; });
  column("since", [](const EngineStatus& e) { return e.since_s; });
  return out.end();
}

/// [from, to, requests a second]: from the clusters where requests enter to engines, or to the engines' clusters.
std::string flows_json(const FleetView& view, bool to_clusters) {
  const schema::FleetTable* table = view.newest_table();
  if (table == nullptr || (!to_clusters && table->engines.size() > most_flow_engines)) return "[]";
  std::map<std::pair<std::size_t, std::size_t>, double> flows;
  for (std::size_t from = 0; from < table->clusters.size(); ++from) {
    const auto heard = view.snapshots.find(table->clusters[from].name);
    if (heard == view.snapshots.end() || heard->second.message.table != table->content) continue;
    const schema::RoutingSnapshot& snapshot = heard->second.message;
    std::map<ClassIndex, double> rates;
    for (const schema::AdmitRow& row : snapshot.admits)
      rates[row.request_class] = row.planned_rps * row.admit;
    for (const schema::WeightRow& row : snapshot.weights) {
      const auto rate = rates.find(row.request_class);
      if (rate == rates.end() || row.engine.at() >= table->engines.size() || row.weight <= 0) continue;
      const std::size_t to = to_clusters ? table->engines[row.engine.at()].cluster.at() : row.engine.at();
      flows[{from, to}] += row.weight * rate->second;
    }
  }
  return array_of(flows, [](const auto& f) {
    return fmt::format("[{},{},{:.4g}]", f.first.first, f.first.second, f.second);
  });
}

std::string summary_json(const fleet_view::FleetStatus& s) {
  Object out;
  out.number("engines", static_cast<double>(s.engines)).number("serving", static_cast<double>(s.serving));
  out.number("gone", static_cast<double>(s.gone))
      .number("offered_rps", s.offered_rps)
      .number("shed_rps", s.shed_rps);
  out.number("inflight", s.inflight).number("latency_s", s.latency_s).number("first_byte_s", s.first_byte_s);
  out.text("leader", s.leader.str())
      .number("term", static_cast<double>(s.term))
      .number("plan_age_s", s.plan_age_s);
  return out.number("gap", s.gap).flag("holding", s.holding).end();
}

std::string demand_json(const std::vector<fleet_view::DemandStatus>& demand) {
  return array_of(demand, [](const fleet_view::DemandStatus& d) {
    Object out;
    out.text("cluster", d.cluster.str()).text("class", d.request_class).number("offered_rps", d.offered_rps);
    out.number("shed_rps", d.shed_rps).number("planned_rps", d.planned_rps);
    return out.number("admit", d.admit).end();
  });
}

std::string event_json(const fleet_view::Event& event, std::uint64_t number) {
  Object out;
  out.number("n", static_cast<double>(number)).number("at_s", to_seconds(event.at.time_since_epoch()));
  out.text("kind", name_of(event.kind))
      .text("subject", event.subject)
      .text("from", event.from)
      .text("to", event.to);
  return out.text("detail", event.detail).text("severity", name_of(event.severity)).end();
}

std::string events_json(const fleet_view::Timeline& timeline, std::uint64_t after) {
  const auto& events = timeline.events();
  std::uint64_t number = timeline.noted() - events.size();
  std::string out = "[";
  for (const fleet_view::Event& event : events)
    if (++number > after) out += (out.size() > 1 ? "," : "") + event_json(event, number);
  return out + "]";
}

std::string decisions_json(const History& history, std::uint64_t after) {
  std::string out = "[";
  for (const DecisionBrief& d : history.decisions()) {
    if (d.number <= after) continue;
    Object row;
    row.number("n", static_cast<double>(d.number)).text("decision", d.decision).text("cluster", d.cluster);
    row.text("class_name", d.class_name)
        .text("engine", d.engine)
        .text("outcome", d.outcome)
        .flag("refused", d.refused);
    row.number("attempts", static_cast<double>(d.attempts)).number("took_s", d.took_s);
    out += (out.size() > 1 ? "," : "") + row.end();
  }
  return out + "]";
}

std::string sample_json(const Sample& sample) {
  Object out;
  out.number("t", to_seconds(sample.at.time_since_epoch())).number("offered", sample.offered_rps);
  out.number("shed", sample.shed_rps).number("latency", sample.latency_s).number("ttft", sample.first_byte_s);
  out.number("use", sample.use).number("gap", sample.gap);
  return out.raw("shares", array_of(sample.shares, [](double s) { return fmt::format("{:.4g}", s); })).end();
}

/// The rows of one table, without its name.
std::string rows_json(const fleet_view::Table& table) {
  const std::string whole = fleet_view::as_json({table});
  const std::size_t begin = whole.find('['), end = whole.rfind(']');
  return whole.substr(begin, end - begin + 1);
}

}  // namespace

std::string fleet_json(const FleetView& view, const Frame& frame, std::string_view fleet) {
  Object out;
  out.text("version", frame.version).text("fleet", fleet).flag("recording", frame.recording);
  const schema::FleetTable* table = view.newest_table();
  const schema::FleetTable none;
  const schema::FleetTable& known = table == nullptr ? none : *table;
  out.raw("clusters", array_of(known.clusters, [](const auto& c) { return json_string(c.name.str()); }));
  out.raw("engines", array_of(known.engines, [](const schema::EngineRow& engine) {
            std::string models;
            for (const ModelName& model : engine.models) models += (models.empty() ? "" : ",") + model.str();
            Object row;
            row.text("name", engine.name.str()).text("models", models);
            return row.number("cluster", static_cast<double>(engine.cluster.at())).end();
          }));
  return out.raw("states", names_of<HealthState>()).raw("bindings", names_of<schema::Binding>()).end();
}

std::string state_json(const FleetView& view, const fleet_view::Timeline& timeline, const History& history,
                       Instant now, const Frame& frame, const Sample* sample) {
  Object out;
  out.text("version", frame.version).raw("now_s", fmt::format("{:.3f}", to_seconds(now.time_since_epoch())));
  if (frame.recording) {
    Object replay;
    replay.number("at_s", frame.at_s).number("length_s", frame.length_s).flag("held", frame.held);
    out.raw("replay", replay.end());
  }
  out.raw("summary", summary_json(fleet_status(view, now)));
  out.raw("engines", engines_json(engine_statuses(view, now)));
  out.raw("flows", flows_json(view, false)).raw("cluster_flows", flows_json(view, true));
  out.raw("demand", demand_json(demand_statuses(view)));
  out.raw("snapshots", rows_json(show_snapshot_terms(view, now)));
  out.raw("optimizers", rows_json(show_leader(view, now).front()));
  out.raw("routers", rows_json(show_routers(view, now).front()));
  out.raw("alerts", rows_json(show_alerts(view, now).front()));
  out.raw("events", events_json(timeline, frame.events_after));
  out.raw("decisions", decisions_json(history, frame.decisions_after));
  if (sample != nullptr) out.raw("sample", sample_json(*sample));
  return out.end();
}

std::string history_json(const FleetView& view, const fleet_view::Timeline& timeline,
                         const History& history) {
  Object out;
  out.raw("labels",
          array_of(history.labels(view), [](const std::string& label) { return json_string(label); }));
  out.flag("by_cluster", History::by_cluster(view));
  out.raw("samples", array_of(history.samples(), [](const Sample& sample) { return sample_json(sample); }));
  out.raw("events", events_json(timeline, 0));
  return out.raw("decisions", decisions_json(history, 0)).end();
}

std::string engine_json(const FleetView& view, const EngineName& engine, Instant now) {
  if (engine.empty()) return "{}";  // with a name there are the weights, the price and what is not used
  const auto tables = show_weights(view, now, engine);
  Object out;
  out.text("engine", engine.str());
  const auto* verdict = view.verdict(engine);
  out.text("evidence", verdict == nullptr ? std::string()
                                          : fmt::format("{}: {}", name_of(verdict->message.evidence),
                                                        verdict->message.detail));
  return out.raw("weights", rows_json(tables[0])).raw("lost", rows_json(tables[2])).end();
}

}  // namespace signalbox::console
