#include "tools/fleet_view/show.hpp"

#include <fmt/format.h>

#include <numeric>

namespace signalbox::fleet_view {
namespace {

Cell seconds(Duration d) { return to_seconds(d); }
Cell version_text(const SnapshotVersion& v) { return v.sequence == 0 ? Cell() : cell(fmt::format("{}", v)); }

/// What all clusters together plan to have in flight on an engine.
double planned_inflight(const FleetView& view, const EngineName& engine) {
  double sum = 0;
  for (const auto& [cluster, snapshot] : view.snapshots)
    for (const schema::WeightRow& row : snapshot.message.weights)
      if (view.engine_name(snapshot.message.table, row.engine) == engine.str()) sum += row.planned_inflight;
  return sum;
}

std::string joined(const std::vector<ModelName>& models) {
  std::string out;
  for (const ModelName& model : models) out += (out.empty() ? "" : ",") + model.str();
  return out;
}

const schema::PriceRow* price_of(const FleetView& view, const schema::RoutingSnapshot& snapshot,
                                 std::string_view engine) {
  for (const schema::PriceRow& row : snapshot.prices)
    if (view.engine_name(snapshot.table, row.engine) == engine) return &row;
  return nullptr;
}

void add_weights(const FleetView& view, const schema::RoutingSnapshot& snapshot, Table& table) {
  for (const schema::WeightRow& row : snapshot.weights) {
    const std::string engine = view.engine_name(snapshot.table, row.engine);
    const schema::PriceRow* price = price_of(view, snapshot, engine);
    table.rows.push_back({cell(snapshot.cluster.str()),
                          cell(view.class_name(snapshot.policy, row.request_class)), cell(engine),
                          cell(row.weight), cell(row.planned_inflight), price ? cell(price->price) : Cell(),
                          price ? cell(price->planned_load) : Cell(), price ? cell(price->capacity) : Cell(),
                          price ? cell(name_of(price->binding)) : Cell()});
  }
}

Table weights_table() {
  return {"weights",
          {{"cluster"},
           {"class"},
           {"engine"},
           {"weight", 4},
           {"planned_inflight", 2},
           {"price", 4},
           {"planned_load", 3},
           {"capacity", 3},
           {"binding"}},
          {}};
}

}  // namespace

std::vector<Table> show_engines(const FleetView& view, Instant now) {
  Table table{"engines",
              {{"engine"},
               {"cluster"},
               {"models"},
               {"verdict"},
               {"evidence"},
               {"since_s", 1},
               {"capacity", 2},
               {"running"},
               {"waiting"},
               {"kv_usage", 3},
               {"slowness", 2},
               {"tpot_s", 4},
               {"planned_inflight", 2},
               {"signal_age_s", 2}},
              {}};
  const schema::FleetTable* fleet = view.newest_table();
  if (fleet == nullptr) return {table};
  for (const schema::EngineRow& engine : fleet->engines) {
    const auto* verdict = view.verdict(engine.name);
    const auto heard = view.signals.find(engine.name);
    const bool known = heard != view.signals.end();
    const schema::EngineSignal signal = known ? heard->second.message : schema::EngineSignal();
    const bool placed = engine.cluster.valid() && engine.cluster.at() < fleet->clusters.size();
    table.rows.push_back(
        {cell(engine.name.str()), placed ? cell(fleet->clusters[engine.cluster.at()].name.str()) : Cell(),
         cell(joined(engine.models)), verdict ? cell(name_of(verdict->message.state)) : Cell(),
         verdict ? cell(name_of(verdict->message.evidence)) : Cell(),
         verdict ? seconds(verdict->message.since + verdict->age(now)) : Cell(),
         verdict ? cell(verdict->message.capacity_factor) : Cell(), maybe(signal.running),
         maybe(signal.waiting), maybe(signal.kv_usage), known ? cell(signal.slowness) : Cell(),
         maybe(signal.tpot_s), cell(planned_inflight(view, engine.name)),
         known ? seconds(heard->second.age(now) + signal.reading_age) : Cell()});
  }
  return {table};
}

std::vector<Table> show_snapshots(const FleetView& view, Instant now, const ClusterName& only) {
  Table versions{"snapshots",
                 {{"cluster"},
                  {"version"},
                  {"kind"},
                  {"age_s", 2},
                  {"from"},
                  {"policy"},
                  {"table"},
                  {"gap", 5},
                  {"objective", 3},
                  {"lower_bound", 3},
                  {"cause"}},
                 {}};
  Table admits{
      "admits",
      {{"cluster"}, {"class"}, {"admit", 3}, {"planned_rps", 2}, {"prompt_tokens", 0}, {"output_tokens", 0}},
      {}};
  Table weights = weights_table();
  for (const auto& [cluster, heard] : view.snapshots) {
    if (!only.empty() && cluster != only) continue;
    const schema::RoutingSnapshot& snapshot = heard.message;
    versions.rows.push_back({cell(cluster.str()), version_text(snapshot.version),
                             cell(name_of(snapshot.kind)), seconds(heard.age(now)), cell(heard.from.str()),
                             cell(snapshot.policy.brief()), cell(snapshot.table.brief()), cell(snapshot.gap),
                             cell(snapshot.objective), cell(snapshot.lower_bound), cell(snapshot.cause)});
    for (const schema::AdmitRow& row : snapshot.admits)
      admits.rows.push_back({cell(cluster.str()), cell(view.class_name(snapshot.policy, row.request_class)),
                             cell(row.admit), cell(row.planned_rps), cell(row.prompt_tokens),
                             cell(row.output_tokens)});
    add_weights(view, snapshot, weights);
  }
  return {versions, admits, weights};
}

std::vector<Table> show_leader(const FleetView& view, Instant now) {
  Table table{"optimizers",
              {{"optimizer"},
               {"leads"},
               {"term"},
               {"snapshot"},
               {"holding"},
               {"heard_share", 2},
               {"plan_age_s", 2},
               {"beat_age_s", 2},
               {"state"}},
              {}};
  for (const auto& [id, beat] : view.beats) {
    const Role role = beat.message.role;
    if (role != Role::global_optimizer && role != Role::feedback_balancer) continue;
    const auto alive = view.keep_alives.find(id);
    const bool keeps = alive != view.keep_alives.end() && beat.message.leads;
    Cell plan_age;
    for (const auto& [cluster, snapshot] : view.snapshots)
      if (snapshot.from == id) plan_age = seconds(snapshot.age(now));
    table.rows.push_back({cell(id.str()), flag(beat.message.leads), count(beat.message.term.counter),
                          version_text(beat.message.snapshot),
                          keeps ? flag(alive->second.message.holding) : Cell(),
                          keeps ? cell(alive->second.message.heard_share) : Cell(), plan_age,
                          seconds(beat.age(now)), cell(beat.message.state)});
  }
  return {table};
}

std::vector<Table> show_routers(const FleetView& view, Instant now) {
  Table table{"routers",
              {{"router"},
               {"cluster"},
               {"ready"},
               {"endpoint"},
               {"operator_endpoint"},
               {"snapshot"},
               {"last_receipt"},
               {"offered_rps", 2},
               {"shed_rps", 2},
               {"inflight", 0},
               {"failed"},
               {"beat_age_s", 2},
               {"state"}},
              {}};
  for (const auto& [id, beat] : view.beats) {
    if (beat.message.role != Role::cluster_router) continue;
    Cell offered, shed, inflight, failed, receipt;
    if (const auto demand = view.demands.find(id); demand != view.demands.end()) {
      double offers = 0, refusals = 0;
      for (const schema::DemandRow& row : demand->second.message.rows) {
        offers += static_cast<double>(row.offered);
        refusals += static_cast<double>(row.shed);
      }
      const double period_s = to_seconds(demand->second.message.period);
      if (period_s > 0) {
        offered = offers / period_s;
        shed = refusals / period_s;
      }
    }
    if (const auto outcome = view.outcomes.find(id); outcome != view.outcomes.end()) {
      double open = 0;
      std::uint64_t failures = 0;
      for (const schema::OutcomeRow& row : outcome->second.message.engines) {
        open += row.inflight;
        failures += row.connect_errors + row.resets + row.timeouts + row.server_errors + row.broken_streams;
      }
      inflight = open;
      failed = count(failures);
    }
    if (const auto answer = view.receipts.find(id); answer != view.receipts.end())
      receipt = cell(name_of(answer->second.message.reason));
    table.rows.push_back({cell(id.str()), cell(beat.message.cluster.str()), flag(beat.message.ready),
                          cell(beat.message.endpoint), cell(beat.message.operator_endpoint),
                          version_text(beat.message.snapshot), receipt, offered, shed, inflight, failed,
                          seconds(beat.age(now)), cell(beat.message.state)});
  }
  return {table};
}

std::vector<Table> show_weights(const FleetView& view, Instant now, const EngineName& engine) {
  std::vector<Table> all = show_snapshots(view, now);
  Table weights = weights_table();
  for (auto& row : all.back().rows)
    if (std::get<std::string>(row[2]) == engine.str()) weights.rows.push_back(std::move(row));
  Table lost{"not_used", {{"cluster"}, {"class"}, {"reason"}, {"reduced_cost_s", 4}, {"sentence"}}, {}};
  Table price{"price",
              {{"cluster"},
               {"price", 4},
               {"planned_load", 3},
               {"capacity", 3},
               {"slowness", 2},
               {"binding"},
               {"sentence"}},
              {}};
  for (const auto& [cluster, heard] : view.snapshots) {
    const schema::RoutingSnapshot& snapshot = heard.message;
    for (const schema::RunnerUpRow& row : snapshot.runners_up)
      if (view.engine_name(snapshot.table, row.engine) == engine.str())
        lost.rows.push_back({cell(cluster.str()), cell(view.class_name(snapshot.policy, row.request_class)),
                             cell(name_of(row.reason)), cell(row.reduced_cost_s),
                             cell(sentence_of(row.reason))});
    if (const schema::PriceRow* row = price_of(view, snapshot, engine.str()))
      price.rows.push_back({cell(cluster.str()), cell(row->price), cell(row->planned_load),
                            cell(row->capacity), cell(row->slowness), cell(name_of(row->binding)),
                            cell(sentence_of(row->binding))});
  }
  return {weights, price, lost};
}

std::vector<Table> show_policy(const FleetView& view, Instant now) {
  Table table{"policy", {{"name"}, {"version"}, {"hash"}, {"from"}, {"age_s", 1}}, {}};
  Table classes{
      "classes", {{"class"}, {"model"}, {"criticality"}, {"shed_cost_s", 1}, {"floor_share", 2}}, {}};
  if (view.policy) {
    const schema::Policy& policy = view.policy->message;
    table.rows.push_back({cell(policy.name), count(policy.version), cell(policy.hash.hex()),
                          cell(view.policy->from.str()), seconds(view.policy->age(now))});
  }
  if (view.compiled)
    for (const policy::ClassRow& row : view.compiled->classes)
      classes.rows.push_back({cell(row.name.str()), cell(view.compiled->at(row.model).name.str()),
                              cell(name_of(row.criticality)), cell(row.shed_cost_seconds),
                              cell(row.floor_share)});
  return {table, classes};
}

std::vector<Table> show_processes(const FleetView& view, Instant now) {
  Table table{"processes",
              {{"process"},
               {"role"},
               {"cluster"},
               {"ready"},
               {"uptime_s", 0},
               {"resident_mib", 0},
               {"loop_lag_ms", 1},
               {"messages_in"},
               {"refused"},
               {"lost"},
               {"actors_restarted"},
               {"beat_age_s", 2},
               {"state"}},
              {}};
  for (const auto& [id, heard] : view.beats) {
    const schema::Beat& beat = heard.message;
    table.rows.push_back(
        {cell(id.str()), cell(name_of(beat.role)), cell(beat.cluster.str()), flag(beat.ready),
         seconds(beat.uptime), cell(static_cast<double>(beat.resident_bytes) / 1048576.0),
         cell(to_seconds(beat.loop_lag) * 1e3), count(beat.messages_in), count(beat.messages_refused),
         count(beat.messages_lost), count(beat.actors_restarted), seconds(heard.age(now)), cell(beat.state)});
  }
  return {table};
}

std::vector<Table> show_alerts(const FleetView& view, Instant now) {
  Table table{
      "alerts", {{"alert"}, {"severity"}, {"subject"}, {"age_s", 1}, {"summary"}, {"look_closer"}}, {}};
  for (const auto& [name, heard] : view.alerts)
    table.rows.push_back({cell(name.str()), cell(name_of(heard.message.severity)),
                          cell(heard.message.subject), seconds(heard.age(now)), cell(heard.message.summary),
                          cell(heard.message.look_closer)});
  return {table};
}

}  // namespace signalbox::fleet_view
