#include "actors/cluster_router/routing/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "actors/cluster_router/routing/eligibility.hpp"
#include "actors/kit/shape/curve.hpp"
#include "actors/kit/shape/egress.hpp"

namespace signalbox::routing {

bool EngineSet::intersects(const EngineSet& other) const {
  for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
    if ((words_[i] & other.words_[i]) != 0) return true;
  return false;
}

bool EngineSet::subset_of(const EngineSet& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if ((words_[i] & ~(i < other.words_.size() ? other.words_[i] : 0)) != 0) return false;
  return true;
}

std::optional<EngineIndex> View::find_engine(std::string_view name) const {
  const auto& rows = plan->by_name;
  const auto at = std::lower_bound(rows.begin(), rows.end(), name,
                                   [](const auto& row, std::string_view n) { return row.first < n; });
  if (at == rows.end() || at->first != name) return std::nullopt;
  return at->second;
}

namespace {

/// An engine whose curve nobody declared: a mid-size model on one GPU. Only ratios between engines matter, and all
/// undeclared ones are equal.
constexpr double default_step_s = 0.02;
constexpr double default_per_sequence_s = 0.0005;
constexpr double default_per_prefill_token_s = 0.0001;

const EngineInput& input_of(const ViewInputs& inputs, std::size_t engine) {
  static constexpr EngineInput nothing;
  return engine < inputs.engines.size() ? inputs.engines[engine] : nothing;
}

/// p of the routing rule: the requests that one more second of work on this engine delays, by the plan. The published
/// price is G' = q / (1-u)^2, of which u*G' falls on others; where the batch limit caps what can be in flight, the
/// rest waits, and the delay grows with the excess (60: by simulation).
double delay_by_plan(double price, double load, double max_batch) {
  const double u = std::clamp(load, 0.0, 0.999);
  const double q = price * (1 - u) * (1 - u);
  if (max_batch <= 0) return u * price;
  const double capped = max_batch / (max_batch + q);
  if (u <= capped) return u * price;
  return max_batch / (1 - capped) * (1 + 60 * (u - capped));
}

void read_prices(const ViewInputs& inputs, std::vector<EngineFacts>& engines) {
  if (inputs.snapshot == nullptr) return;
  const double ceiling = inputs.policy->limits.load_ceiling;
  for (const schema::PriceRow& row : inputs.snapshot->prices) {
    if (row.engine.at() >= engines.size() || row.capacity <= 0) continue;
    EngineFacts& facts = engines[row.engine.at()];
    // What a full engine's place is worth to those who are refused is admission's business: it delays nobody there.
    const double price = row.congestion > 0 ? std::min(row.price, row.congestion) : row.price;
    facts.plan_price = delay_by_plan(price, row.planned_load * ceiling / row.capacity, facts.max_batch);
  }
}

/// By engine: measured, else as the plan took it, else as declared.
std::vector<double> slowness_of_all(const ViewInputs& inputs) {
  std::vector<double> slowness(inputs.table->engines.size(), 1.0);
  if (inputs.snapshot != nullptr)
    for (const schema::PriceRow& row : inputs.snapshot->prices)
      if (row.engine.at() < slowness.size() && row.slowness > 0) slowness[row.engine.at()] = row.slowness;
  for (std::size_t e = 0; e < slowness.size(); ++e) {
    const EngineInput& input = input_of(inputs, e);
    slowness[e] = kit::slowness_for(input.profile, input.signal).value_or(slowness[e]);
  }
  return slowness;
}

void read_curve(const schema::EngineRow& row, const schema::EngineProfile* profile, double slowness,
                EngineFacts& facts) {
  const bool measured = profile != nullptr && profile->step_s > 0;
  facts.a = measured ? profile->step_s : row.step_s;
  facts.b = measured ? profile->per_sequence_s : row.per_sequence_s;
  facts.k = measured ? profile->per_context_token_s : row.per_context_token_s;
  facts.c = measured ? profile->per_prefill_token_s : row.per_prefill_token_s;
  facts.curve_known = facts.a > 0;
  if (!facts.curve_known) {
    facts.a = default_step_s;
    facts.b = default_per_sequence_s;
    facts.k = 0;
    facts.c = default_per_prefill_token_s;
  }
  for (double* time : {&facts.a, &facts.b, &facts.k, &facts.c}) *time *= slowness;
  facts.kv_tokens = profile != nullptr && profile->kv_tokens > 0 ? profile->kv_tokens : row.kv_tokens;
  facts.max_batch = profile != nullptr && profile->max_batch > 0 ? profile->max_batch : row.max_batch;
}

void read_signal(const EngineInput& input, EngineFacts& facts) {
  const schema::EngineSignal* signal = input.signal;
  if (signal == nullptr) return;
  facts.described_at = input.signal_at;
  if (signal->kv_capacity_tokens.value_or(0) > 0) facts.kv_tokens = *signal->kv_capacity_tokens;
  if (signal->running) facts.requests = *signal->running + signal->waiting.value_or(0);
  facts.waiting = signal->waiting.value_or(unknown);
  if (signal->kv_usage && facts.kv_tokens > 0) facts.kv_used = *signal->kv_usage * facts.kv_tokens;
}

void read_verdict(const EngineInput& input, const policy::Limits& limits, EngineFacts& facts) {
  if (input.verdict != nullptr) {
    facts.state = input.verdict->state;
    facts.capacity_factor = static_cast<float>(input.verdict->capacity_factor);
    facts.judged = true;
  }
  // A part of an engine is a part of what it can run: a share of a cap far above its batch would let all in.
  const double share = std::min(1.0, static_cast<double>(facts.capacity_factor));
  const double whole = share < 1 && facts.max_batch > 0
                           ? std::min(static_cast<double>(limits.in_flight_cap), facts.max_batch)
                           : limits.in_flight_cap;
  facts.in_flight_cap = std::max(1u, static_cast<std::uint32_t>(std::ceil(whole * share)));
}

/// By ClusterIndex: the round trip from this router's cluster.
std::vector<double> network_costs(const ViewInputs& inputs, ClusterIndex here) {
  std::vector<double> rtt_s(inputs.table->clusters.size(), 0.0);
  for (const schema::LinkRow& link : inputs.table->links)
    if (link.from == here && link.to.at() < rtt_s.size()) rtt_s[link.to.at()] = link.rtt_s;
  for (std::size_t i = 0; i < std::min(rtt_s.size(), inputs.measured_rtt_s.size()); ++i)
    if (inputs.measured_rtt_s[i] >= 0) rtt_s[i] = inputs.measured_rtt_s[i];
  return rtt_s;
}

std::vector<EngineFacts> read_engines(const ViewInputs& inputs, ClusterIndex here) {
  const auto& rows = inputs.table->engines;
  const std::vector<double> rtt_s = network_costs(inputs, here);
  const std::vector<double> slowness = slowness_of_all(inputs);
  const auto& clusters = inputs.table->clusters;
  const double egress_s_per_byte = inputs.policy->objective.weights.egress / kit::megabyte;
  std::vector<EngineFacts> engines(rows.size());
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const EngineInput& input = input_of(inputs, e);
    read_curve(rows[e], input.profile, slowness[e], engines[e]);
    read_signal(input, engines[e]);
    read_verdict(input, inputs.policy->limits, engines[e]);
    if (rows[e].cluster.at() < rtt_s.size()) engines[e].network_s = rtt_s[rows[e].cluster.at()];
    if (clusters[rows[e].cluster.at()].region != clusters[here.at()].region)
      engines[e].egress_s_per_byte = egress_s_per_byte;
  }
  read_prices(inputs, engines);
  return engines;
}

/// Chooses the eligible of the allowed; panic when too few are ready and suspicion is what bars others.
void find_eligible(const std::vector<EngineFacts>& engines, double panic_below, ClassTable& row) {
  std::size_t allowed = 0, ready = 0, suspected = 0;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    if (!row.allowed.contains(EngineIndex(e))) continue;
    const EngineFacts& facts = engines[e];
    const double factor = static_cast<double>(facts.capacity_factor);
    ++allowed;
    if (takes_new(facts.state, factor, false))
      ++ready;
    else if (takes_new(facts.state, factor, true))
      ++suspected;
  }
  row.panic = suspected > 0 && static_cast<double>(ready) < panic_below * static_cast<double>(allowed);
  row.eligible = EngineSet(engines.size());
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const EngineFacts& facts = engines[e];
    if (!row.allowed.contains(EngineIndex(e))) continue;
    if (!takes_new(facts.state, static_cast<double>(facts.capacity_factor), row.panic)) continue;
    row.eligible.insert(EngineIndex(e));
    row.engines.emplace_back(e);
  }
}

void make_spread(const std::vector<EngineFacts>& engines, ClassTable& row) {
  std::vector<Share> shares;
  for (const EngineIndex e : row.engines) {
    const double factor = static_cast<double>(engines[e.at()].capacity_factor);
    shares.push_back({e, row.panic && factor <= 0 ? 1.0 : factor});
  }
  row.spread = AliasTable(shares);
}

/// Under panic the plan's weights are for a fleet that is not believed to be so any more: draws are even then.
void read_plan(const schema::RoutingSnapshot& snapshot, std::vector<ClassTable>& classes) {
  for (const schema::AdmitRow& row : snapshot.admits) {
    ClassTable& table = classes[row.request_class.at()];
    table.admit = row.admit;
    if (row.prompt_tokens > 0) table.uncached_tokens = row.prompt_tokens;
    if (row.output_tokens > 0) table.output_tokens = row.output_tokens;
  }
  std::vector<Share> shares;
  for (std::size_t i = 0; i < snapshot.weights.size(); ++i) {
    const schema::WeightRow& row = snapshot.weights[i];
    ClassTable& table = classes[row.request_class.at()];
    if (table.eligible.contains(row.engine)) shares.push_back({row.engine, row.weight});
    const bool last =
        i + 1 == snapshot.weights.size() || snapshot.weights[i + 1].request_class != row.request_class;
    if (!last) continue;
    if (!table.panic) table.planned = AliasTable(shares);
    shares.clear();
  }
}

std::vector<std::pair<std::string_view, EngineIndex>> name_index(const schema::FleetTable& table) {
  std::vector<std::pair<std::string_view, EngineIndex>> rows;
  for (std::size_t e = 0; e < table.engines.size(); ++e)
    rows.emplace_back(table.engines[e].name.str(), EngineIndex(e));
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::shared_ptr<const PlanTables> make_tables(const ViewInputs& inputs,
                                              const std::vector<EngineFacts>& engines) {
  auto tables = std::make_shared<PlanTables>();
  const std::vector<EngineSet> allowed = allowed_by_policy(*inputs.policy, *inputs.table);
  tables->classes.resize(allowed.size());
  for (std::size_t c = 0; c < allowed.size(); ++c) tables->classes[c].allowed = allowed[c];
  if (inputs.snapshot != nullptr)
    for (const schema::AllowedRow& row : inputs.snapshot->allowed)
      tables->classes[row.request_class.at()].allowed = set_of_bits(row.engines, engines.size());
  for (ClassTable& row : tables->classes) {
    find_eligible(engines, inputs.policy->eject.panic_below, row);
    make_spread(engines, row);
  }
  if (inputs.snapshot != nullptr) {
    read_plan(*inputs.snapshot, tables->classes);
    tables->groups = PlacedGroups(inputs.snapshot->groups);
  }

  tables->incarnations.resize(engines.size());
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const EngineInput& input = input_of(inputs, e);
    if (input.verdict != nullptr) tables->incarnations[e] = input.verdict->incarnation;
  }
  tables->by_name = name_index(*inputs.table);
  return tables;
}

/// The tables of the previous view still hold: nothing that they are made of has changed.
bool same_tables(const ViewInputs& inputs, const std::vector<EngineFacts>& engines, const View* previous) {
  if (previous == nullptr || previous->policy != inputs.policy || previous->table != inputs.table ||
      previous->snapshot != inputs.snapshot)
    return false;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const EngineFacts &now = engines[e], &then = previous->engines[e];
    const EngineInput& input = input_of(inputs, e);
    if (now.state != then.state || now.capacity_factor != then.capacity_factor || now.judged != then.judged)
      return false;
    if (input.verdict != nullptr && input.verdict->incarnation != previous->plan->incarnations[e])
      return false;
  }
  return true;
}

std::vector<CacheFacts> read_caches(const ViewInputs& inputs) {
  std::vector<CacheFacts> out;
  for (std::size_t e = 0; e < inputs.engines.size(); ++e) {
    const schema::CacheDigest* said = inputs.engines[e].cache;
    if (said == nullptr) continue;
    out.resize(inputs.engines.size());
    out[e].told = true;
    out[e].clears = said->clears;
    if (said->knowledge == schema::CacheKnowledge::complete && said->removed_total > 0 &&
        said->held_blocks > 0 && said->block_tokens > 0)
      out[e].held_tokens = static_cast<double>(said->held_blocks) * said->block_tokens;
  }
  return out;
}

std::optional<ClusterIndex> find_cluster(const schema::FleetTable& table, const ClusterName& name) {
  for (std::size_t i = 0; i < table.clusters.size(); ++i)
    if (table.clusters[i].name == name) return ClusterIndex(i);
  return std::nullopt;
}

}  // namespace

tl::expected<std::shared_ptr<const View>, Refusal> build_view(const ViewInputs& inputs,
                                                              const View* previous) {
  const auto here = find_cluster(*inputs.table, inputs.cluster);
  if (!here)
    return tl::unexpected(
        Refusal{schema::ReceiptReason::wrong_cluster,
                fmt::format("the fleet table knows no cluster {}; is this router's cluster named right?",
                            inputs.cluster)});
  const bool checked = previous != nullptr && previous->snapshot == inputs.snapshot &&
                       previous->policy == inputs.policy && previous->table == inputs.table;
  if (inputs.snapshot != nullptr && !checked)
    if (auto refusal = check_snapshot(*inputs.snapshot, *inputs.policy, *inputs.table, inputs.cluster))
      return tl::unexpected(*std::move(refusal));

  auto view = std::make_shared<View>();
  view->cluster = inputs.cluster;
  view->policy = inputs.policy;
  view->table = inputs.table;
  view->snapshot = inputs.snapshot;
  view->as_of = inputs.as_of;
  view->engines = read_engines(inputs, *here);
  view->caches = read_caches(inputs);
  view->plan =
      same_tables(inputs, view->engines, previous) ? previous->plan : make_tables(inputs, view->engines);
  view->publish = inputs.publish;
  view->routers = std::max(1u, inputs.routers);
  view->covered_batches = inputs.covered_batches;
  view->sent = inputs.sent;
  view->generation = previous == nullptr ? 1 : previous->generation + 1;
  return view;
}

}  // namespace signalbox::routing
