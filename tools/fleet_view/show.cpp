#include "tools/fleet_view/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/fleet_view/status.hpp"

namespace signalbox::fleet_view {
namespace {

Cell seconds(Duration d) { return to_seconds(d); }
Cell version_text(const SnapshotVersion& v) { return v.sequence == 0 ? Cell() : cell(fmt::format("{}", v)); }

/// The price of an engine's row; nullptr if the snapshot has none.
const schema::PriceRow* price_of(const schema::RoutingSnapshot& snapshot, EngineIndex engine) {
  const auto is_its = [&](const schema::PriceRow& row) { return row.engine == engine; };
  const auto at = engine.valid() ? engine.at() : snapshot.prices.size();
  if (at < snapshot.prices.size() && is_its(snapshot.prices[at])) return &snapshot.prices[at];
  const auto found = std::find_if(snapshot.prices.begin(), snapshot.prices.end(), is_its);
  return found == snapshot.prices.end() ? nullptr : &*found;
}

void add_weight(const FleetView& view, const schema::RoutingSnapshot& snapshot, const schema::WeightRow& row,
                Table& table) {
  const schema::PriceRow* price = price_of(snapshot, row.engine);
  table.rows.push_back(
      {cell(snapshot.cluster.str()), cell(view.class_name(snapshot.policy, row.request_class)),
       cell(view.engine_name(snapshot.table, row.engine)), cell(row.weight), cell(row.planned_inflight),
       price ? cell(price->price) : Cell(), price ? cell(price->planned_load) : Cell(),
       price ? cell(price->capacity) : Cell(), price ? cell(name_of(price->binding)) : Cell()});
}

Table weights_table() {
  return {"weights",
          {{"cluster"},
           {"class"},
           {"engine"},
           {"weight", 4},
           {"planned_inflight", 2, 3},
           {"price", 4},
           {"planned_load", 3, 1},
           {"capacity", 3, 1},
           {"binding", 0, 2}},
          {}};
}

/// "a request costs more there: it would be used if 18 ms nearer or 12 % less loaded"
std::string why_not_used(const schema::RunnerUpRow& row) {
  std::string out(sentence_of(row.reason));
  if (row.reason != schema::LosingReason::dearer && row.reason != schema::LosingReason::full) return out;
  out += fmt::format(": it would be used if {:.3g} ms nearer", 1e3 * row.reduced_cost_s);
  if (row.less_loaded > 1)
    out += ", and not even idle if not";
  else if (row.less_loaded > 0)
    out += fmt::format(" or {:.2g} % less loaded", 100 * row.less_loaded);
  return out;
}

}  // namespace

std::vector<Table> show_engines(const FleetView& view, Instant now) {
  Table table{"engines",
              {{"engine"},
               {"cluster"},
               {"models", 0, 6},
               {"verdict"},
               {"evidence", 0, 5},
               {"since_s", 1, 2},
               {"capacity", 2, 3},
               {"running"},
               {"waiting"},
               {"kv_usage", 3},
               {"slowness", 2, 4},
               {"tpot_s", 4, 4},
               {"planned_inflight", 2, 7},
               {"signal_age_s", 2, 1},
               {"planned_share", 3, 3},
               {"use", 3},
               {"latency_s", 4, 1},
               {"first_byte_s", 4, 8},
               {"failed_rps", 1, 8}},
              {}};
  for (const EngineStatus& e : engine_statuses(view, now))
    table.rows.push_back(
        {cell(e.name.str()), e.cluster.empty() ? Cell() : cell(e.cluster.str()), cell(e.models),
         e.state ? cell(name_of(*e.state)) : Cell(), e.state ? cell(e.evidence) : Cell(), maybe(e.since_s),
         maybe(e.capacity_factor), maybe(e.running), maybe(e.waiting), maybe(e.kv_usage), maybe(e.slowness),
         maybe(e.tpot_s), cell(e.planned_inflight), maybe(e.signal_age_s), cell(e.planned_share),
         maybe(e.use()), maybe(e.latency_s), maybe(e.first_byte_s), cell(e.failed_rps)});
  return {table};
}

Table show_snapshot_terms(const FleetView& view, Instant now, const ClusterName& only) {
  Table versions{"snapshots",
                 {{"cluster"},
                  {"version"},
                  {"kind"},
                  {"age_s", 2},
                  {"from", 0, 4},
                  {"policy", 0, 3},
                  {"table", 0, 5},
                  {"gap", 5},
                  {"objective", 3, 1},
                  {"lower_bound", 3, 2},
                  {"cause"}},
                 {}};
  for (const auto& [cluster, heard] : view.snapshots) {
    if (!only.empty() && cluster != only) continue;
    const schema::RoutingSnapshot& snapshot = heard.message;
    versions.rows.push_back({cell(cluster.str()), version_text(snapshot.version),
                             cell(name_of(snapshot.kind)), seconds(heard.age(now)), cell(heard.from.str()),
                             cell(snapshot.policy.brief()), cell(snapshot.table.brief()), cell(snapshot.gap),
                             cell(snapshot.objective), cell(snapshot.lower_bound), cell(snapshot.cause)});
  }
  return versions;
}

std::vector<Table> show_snapshots(const FleetView& view, Instant now, const ClusterName& only) {
  Table admits{
      "admits",
      {{"cluster"}, {"class"}, {"admit", 3}, {"planned_rps", 2}, {"prompt_tokens", 0}, {"output_tokens", 0}},
      {}};
  Table weights = weights_table();
  for (const auto& [cluster, heard] : view.snapshots) {
    if (!only.empty() && cluster != only) continue;
    const schema::RoutingSnapshot& snapshot = heard.message;
    for (const schema::AdmitRow& row : snapshot.admits)
      admits.rows.push_back({cell(cluster.str()), cell(view.class_name(snapshot.policy, row.request_class)),
                             cell(row.admit), cell(row.planned_rps), cell(row.prompt_tokens),
                             cell(row.output_tokens)});
    for (const schema::WeightRow& row : snapshot.weights) add_weight(view, snapshot, row, weights);
  }
  return {show_snapshot_terms(view, now, only), admits, weights};
}

std::vector<Table> show_leader(const FleetView& view, Instant now) {
  Table table{"optimizers",
              {{"optimizer"},
               {"leads"},
               {"term"},
               {"snapshot", 0, 1},
               {"holding", 0, 3},
               {"heard_share", 2, 4},
               {"plan_age_s", 2},
               {"beat_age_s", 2, 2},
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
               {"endpoint", 0, 5},
               {"operator_endpoint", 0, 6},
               {"snapshot"},
               {"last_receipt", 0, 2},
               {"offered_rps", 2},
               {"shed_rps", 2},
               {"inflight", 0},
               {"failed", 0, 1},
               {"beat_age_s", 2, 4},
               {"state", 0, 3}},
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

std::vector<Table> show_weights(const FleetView& view, Instant, const EngineName& engine,
                                const ClusterName& only) {
  Table weights = weights_table();
  Table lost{
      "not_used",
      {{"cluster"}, {"class"}, {"engine"}, {"reason"}, {"nearer_s", 4}, {"less_loaded", 3, 1}, {"sentence"}},
      {}};
  Table price{"price",
              {{"cluster"},
               {"engine"},
               {"price", 4},
               {"planned_load", 3},
               {"capacity", 3},
               {"slack", 3},
               {"slowness", 2, 1},
               {"binding"},
               {"sentence"}},
              {}};
  Table limits{
      "limits",
      {{"cluster"}, {"class"}, {"engine"}, {"limit"}, {"moved", 4}, {"price_s", 4}, {"held"}, {"sentence"}},
      {}};
  Table costs{"costs", {{"part"}, {"cost", 3}, {"sentence"}}, {}};
  Table change{"change", {{"cluster"}, {"version"}, {"moved", 3}, {"cause"}}, {}};
  for (const auto& [cluster, heard] : view.snapshots) {
    if (!only.empty() && cluster != only) continue;
    const schema::RoutingSnapshot& snapshot = heard.message;
    const auto name = [&](EngineIndex row) { return view.engine_name(snapshot.table, row); };
    const auto is_asked = [&](EngineIndex row) { return engine.empty() || name(row) == engine.str(); };
    for (const schema::WeightRow& row : snapshot.weights)
      if (is_asked(row.engine)) add_weight(view, snapshot, row, weights);
    if (engine.empty() && only.empty()) continue;  // the rest is of one engine or cluster
    for (const schema::RunnerUpRow& row : snapshot.runners_up)
      if (is_asked(row.engine))
        lost.rows.push_back({cell(cluster.str()), cell(view.class_name(snapshot.policy, row.request_class)),
                             cell(name(row.engine)), cell(name_of(row.reason)), cell(row.reduced_cost_s),
                             row.less_loaded > 0 && row.less_loaded <= 1 ? cell(row.less_loaded) : Cell(),
                             cell(why_not_used(row))});
    for (const schema::PriceRow& row : snapshot.prices)
      if (is_asked(row.engine))
        price.rows.push_back({cell(cluster.str()), cell(name(row.engine)), cell(row.price),
                              cell(row.planned_load), cell(row.capacity),
                              cell(std::max(0.0, row.capacity - row.planned_load)), cell(row.slowness),
                              cell(name_of(row.binding)), cell(sentence_of(row.binding))});
    for (const schema::LimitRow& row : snapshot.limits)
      if (is_asked(row.engine))
        limits.rows.push_back({cell(cluster.str()), cell(view.class_name(snapshot.policy, row.request_class)),
                               cell(name(row.engine)), cell(name_of(row.limit)), cell(row.moved),
                               row.price_s > 0 ? cell(row.price_s) : Cell(), cell(row.held ? "yes" : "no"),
                               cell(sentence_of(row.limit))});
    if (costs.rows.empty())  // they are the whole fleet's
      for (const schema::CostRow& row : snapshot.costs)
        costs.rows.push_back({cell(name_of(row.part)), cell(row.cost), cell(sentence_of(row.part))});
    change.rows.push_back(
        {cell(cluster.str()), version_text(snapshot.version), cell(snapshot.moved), cell(snapshot.cause)});
  }
  if (engine.empty() && only.empty()) return {weights};
  return {weights, price, lost, limits, costs, change};
}

std::vector<Table> show_reasons(const FleetView& view, const ClusterName& cluster,
                                const std::string& class_name) {
  std::vector<Table> out = show_weights(view, {}, {}, cluster);
  std::erase_if(out, [](const Table& table) { return table.name == "costs" || table.name == "change"; });
  std::set<Cell> engines;
  for (Table& table : out) {
    const auto by_class = std::ranges::find(table.columns, "class", &Column::name);
    const auto by_engine = std::ranges::find(table.columns, "engine", &Column::name);
    if (by_class == table.columns.end()) continue;
    const auto c = static_cast<std::size_t>(by_class - table.columns.begin());
    const auto e = static_cast<std::size_t>(by_engine - table.columns.begin());
    std::erase_if(table.rows, [&](const auto& row) { return row[c] != cell(class_name); });
    for (const auto& row : table.rows) engines.insert(row[e]);
  }
  for (Table& table : out)
    if (table.name == "price")
      std::erase_if(table.rows, [&](const auto& row) { return !engines.contains(row[1]); });
  return out;
}

std::vector<Table> show_calibration(const FleetView& view, Instant now) {
  Table all{"calibration",
            {{"optimizer"}, {"ratio", 3}, {"windows_off"}, {"headroom", 2}, {"window_s", 1}, {"age_s", 1}},
            {}};
  Table latency{"latencies",
                {{"class"},
                 {"engine"},
                 {"requests"},
                 {"expected_latency_s", 3},
                 {"latency_s", 3},
                 {"ratio", 3},
                 {"expected_first_byte_s", 3},
                 {"first_byte_s", 3}},
                {}};
  Table load{"loads", {{"engine"}, {"expected_load", 3}, {"load", 3}}, {}};
  for (const auto& [id, heard] : view.calibrations) {
    const schema::Calibration& c = heard.message;
    all.rows.push_back({cell(id.str()), cell(c.ratio), count(c.windows_off), cell(c.headroom),
                        seconds(c.window), seconds(heard.age(now))});
    for (const schema::CalibrationRow& row : c.rows)
      latency.rows.push_back(
          {cell(view.class_name(c.policy, row.request_class)), cell(view.engine_name(c.table, row.engine)),
           count(row.requests), cell(row.expected_latency_s), cell(row.latency_s),
           row.expected_latency_s > 0 ? cell(row.latency_s / row.expected_latency_s) : Cell(),
           cell(row.expected_first_byte_s), cell(row.first_byte_s)});
    for (const schema::CalibratedLoadRow& row : c.loads)
      load.rows.push_back(
          {cell(view.engine_name(c.table, row.engine)), cell(row.expected_load), cell(row.load)});
  }
  return {all, latency, load};
}

std::vector<Table> show_policy(const FleetView& view, Instant now) {
  Table table{"policy", {{"name"}, {"version"}, {"hash"}, {"from", 0, 1}, {"age_s", 1}}, {}};
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
               {"resident_mib", 0, 1},
               {"loop_lag_ms", 1, 3},
               {"messages_in", 0, 5},
               {"refused", 0, 4},
               {"lost", 0, 4},
               {"actors_restarted", 0, 6},
               {"beat_age_s", 2, 2},
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

std::vector<Table> show_demand(const FleetView& view, Instant) {
  Table table{"demand",
              {{"cluster"},
               {"class"},
               {"offered_rps", 2},
               {"admitted_rps", 2, 3},
               {"shed_rps", 2},
               {"finished_rps", 2, 2},
               {"planned_rps", 2},
               {"admit", 3},
               {"prompt_tokens_s", 0, 1},
               {"cached_tokens_s", 0, 4},
               {"output_tokens_s", 0, 1}},
              {}};
  for (const DemandStatus& d : demand_statuses(view))
    table.rows.push_back({cell(d.cluster.str()), cell(d.request_class), cell(d.offered_rps),
                          cell(d.admitted_rps), cell(d.shed_rps), cell(d.finished_rps), maybe(d.planned_rps),
                          maybe(d.admit), cell(d.prompt_tokens_s), cell(d.cached_tokens_s),
                          cell(d.output_tokens_s)});
  return {table};
}

std::vector<Table> show_cache(const FleetView& view, Instant now) {
  Table table{"cache",
              {{"engine"},
               {"kv_usage", 3},
               {"kv_tokens", 0},
               {"prompt_tokens", 0, 2},
               {"cached_tokens", 0, 2},
               {"hit_share", 3},
               {"preemptions", 0},
               {"knowledge", 0, 1},
               {"held_blocks", 0, 2},
               {"clears", 0, 3},
               {"missed", 0, 3},
               {"replayed", 0, 3},
               {"events_skipped", 0, 3},
               {"blocks_sent", 0},
               {"signal_age_s", 2, 1}},
              {}};
  for (const auto& [name, heard] : view.signals) {
    const schema::EngineSignal& signal = heard.message;
    const auto digest = view.caches.find(name);
    const auto sent = view.sent_blocks.find(name);
    const auto from_digest = [&](const auto& found, std::uint64_t schema::CacheDigest::*field) {
      return found == view.caches.end() ? Cell() : count(found->second.message.*field);
    };
    const bool counts =
        signal.prompt_tokens_total && signal.cached_tokens_total && *signal.prompt_tokens_total > 0;
    table.rows.push_back(
        {cell(name.str()), maybe(signal.kv_usage), maybe(signal.kv_capacity_tokens),
         maybe(signal.prompt_tokens_total), maybe(signal.cached_tokens_total),
         counts ? cell(*signal.cached_tokens_total / *signal.prompt_tokens_total) : Cell(),
         maybe(signal.preemptions_total),
         digest == view.caches.end() ? Cell() : cell(name_of(digest->second.message.knowledge)),
         from_digest(digest, &schema::CacheDigest::held_blocks),
         from_digest(digest, &schema::CacheDigest::clears),
         from_digest(digest, &schema::CacheDigest::batches_missed),
         from_digest(digest, &schema::CacheDigest::batches_replayed),
         from_digest(digest, &schema::CacheDigest::events_skipped),
         sent == view.sent_blocks.end() ? Cell() : count(sent->second),
         seconds(heard.age(now) + signal.reading_age)});
  }
  return {table};
}

std::vector<Table> show_health(const FleetView& view, Instant now) {
  Table table{"health",
              {{"engine"},
               {"monitor", 0, 3},
               {"state"},
               {"for_s", 1},
               {"capacity", 2},
               {"evidence"},
               {"suspicion", 2, 1},
               {"isolated", 0, 4},
               {"age_s", 2, 2},
               {"detail"}},
              {}};
  for (const auto& [key, heard] : view.verdicts) {
    const schema::HealthVerdict& verdict = heard.message;
    table.rows.push_back({cell(key.first.str()), cell(key.second.str()), cell(name_of(verdict.state)),
                          seconds(verdict.since + heard.age(now)), cell(verdict.capacity_factor),
                          cell(name_of(verdict.evidence)), cell(verdict.suspicion), flag(verdict.isolated),
                          seconds(heard.age(now)), cell(verdict.detail)});
  }
  return {table};
}

std::vector<Table> show_alerts(const FleetView& view, Instant now) {
  Table table{"alerts",
              {{"alert"},
               {"severity"},
               {"subject", 0, 2},
               {"raised_by", 0, 4},
               {"age_s", 1},
               {"owner", 0, 3},
               {"summary"},
               {"look_closer", 0, 1},
               {"runbook", 0, 5}},
              {}};
  for (const auto& [key, heard] : view.alerts) {
    const schema::Alert& alert = heard.message;
    if (heard.age(now) > schema::Alert::info.keep) continue;  // who raised it speaks no more
    table.rows.push_back({cell(alert.name.str()), cell(name_of(alert.severity)), cell(alert.subject),
                          cell(key.second.str()), seconds(heard.age(now)), cell(alert.owner),
                          cell(alert.summary), cell(alert.look_closer), cell(alert.runbook)});
  }
  return {table};
}

}  // namespace signalbox::fleet_view
