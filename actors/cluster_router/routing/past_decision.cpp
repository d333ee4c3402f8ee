#include "actors/cluster_router/routing/past_decision.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::routing {
namespace {

constexpr std::size_t most_engines = 20'000;
constexpr std::size_t most_blocks = 4096;
constexpr std::size_t most_classes = 10'000;

double or_minus_one(double value) { return std::isnan(value) ? -1.0 : value; }
double or_unknown(double value) { return value < 0 ? unknown : value; }
std::uint64_t count_of(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
}

/// The plan's weight of an engine for a class; 0 if it has none.
double planned_weight(const View& view, ClassIndex request_class, EngineIndex engine) {
  if (view.snapshot == nullptr) return 0;
  const auto& rows = view.snapshot->weights;
  const auto key = std::pair(request_class, engine);
  const auto at = std::lower_bound(rows.begin(), rows.end(), key, [](const auto& row, const auto& k) {
    return std::pair(row.request_class, row.engine) < k;
  });
  return at != rows.end() && std::pair(at->request_class, at->engine) == key ? at->weight : 0;
}

schema::InputRow row_of(const Surroundings& around, const Ask& ask, const Tried& tried, EngineIndex engine,
                        const LongestMatch& longest, Instant now) {
  const View& view = around.view;
  const ClassTable& table = view.at(ask.request_class);
  const EngineFacts& facts = view.at(engine);
  const double factor = static_cast<double>(facts.capacity_factor);
  // With what other routers are known to have sent: a decision made again reads the same.
  const OwnLoad own = around.loads.known(engine), then = around.loads.known_at_reading(engine);
  schema::InputRow row;
  row.engine = engine;
  row.planned_weight = table.planned.empty() ? 0 : planned_weight(view, ask.request_class, engine);
  row.spread_weight = table.panic && factor <= 0 ? 1.0 : factor;
  row.step_s = facts.a, row.per_sequence_s = facts.b, row.per_context_token_s = facts.k;
  row.per_prefill_token_s = facts.c, row.max_batch = facts.max_batch, row.kv_tokens = facts.kv_tokens;
  row.network_s = way_there(facts, ask);
  row.plan_price = or_minus_one(facts.plan_price);
  row.described_at = facts.described_at == never_yet ? Duration(-1) : facts.described_at.time_since_epoch();
  row.requests = or_minus_one(facts.requests), row.waiting = or_minus_one(facts.waiting);
  row.kv_used = or_minus_one(facts.kv_used);
  row.in_flight_cap = count_of(around.loads.limit(engine, facts.in_flight_cap));
  row.own_requests = count_of(own.requests), row.own_prefill_tokens = count_of(own.prefill_tokens);
  row.own_kv_tokens = count_of(own.kv_tokens);
  row.then_requests = count_of(then.requests), row.then_prefill_tokens = count_of(then.prefill_tokens);
  row.then_kv_tokens = count_of(then.kv_tokens);
  row.penalty = around.penalties.multiplier(engine, now);
  if (longest.blocks > 0) row.matched_blocks = matched_blocks(around, ask, engine, longest);
  for (std::size_t i = 0; i < longest.holders.size(); ++i)
    if (longest.holders[i] == engine) row.holder = static_cast<std::uint16_t>(i + 1);
  row.tried = tried.contains(engine);
  row.eligible = table.eligible.contains(engine);
  return row;
}

schema::CandidateRow row_of(const Candidate& candidate, const View& view, Instant now) {
  schema::CandidateRow row;
  row.engine = candidate.engine;
  row.fate = candidate.fate;
  row.weight = static_cast<double>(candidate.weight);
  row.penalty = static_cast<double>(candidate.penalty);
  row.network_s = candidate.cost.network, row.queue_s = candidate.cost.queue;
  row.prefill_s = candidate.cost.prefill, row.decode_s = candidate.cost.decode;
  row.price_s = candidate.cost.price, row.total_s = candidate.cost.total();
  row.matched_tokens = static_cast<double>(candidate.matched_tokens);
  row.inflight = static_cast<double>(candidate.belief.requests);
  const Instant described = view.at(candidate.engine).described_at;
  if (described != never_yet) row.signal_age = std::max(Duration::zero(), now - described);
  return row;
}

EngineFacts facts_of(const schema::InputRow& row) {
  EngineFacts out;
  out.a = row.step_s, out.b = row.per_sequence_s, out.k = row.per_context_token_s,
  out.c = row.per_prefill_token_s;
  out.max_batch = row.max_batch, out.kv_tokens = row.kv_tokens, out.network_s = row.network_s;
  out.plan_price = or_unknown(row.plan_price);
  if (row.described_at >= Duration::zero()) out.described_at = instant_at(row.described_at);
  out.requests = or_unknown(row.requests), out.waiting = or_unknown(row.waiting);
  out.kv_used = or_unknown(row.kv_used);
  out.in_flight_cap = static_cast<std::uint32_t>(std::min<std::uint64_t>(row.in_flight_cap, UINT32_MAX));
  return out;
}

OwnLoad load_of(std::uint64_t requests, std::uint64_t prefill, std::uint64_t kv) {
  const auto bounded = [](std::uint64_t n) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(n, 1ull << 53));
  };
  return {bounded(requests), bounded(prefill), bounded(kv)};
}

/// The table that the class's draws come from.
ClassTable table_of(const std::vector<schema::InputRow>& rows, std::size_t engines) {
  ClassTable out;
  out.allowed = EngineSet(engines);
  out.eligible = EngineSet(engines);
  std::vector<Share> planned, spread;
  for (const schema::InputRow& row : rows) {
    out.allowed.insert(row.engine);
    if (!row.eligible) continue;
    out.eligible.insert(row.engine);
    out.engines.push_back(row.engine);
    planned.push_back({row.engine, row.planned_weight});
    spread.push_back({row.engine, row.spread_weight});
  }
  out.planned = AliasTable(planned);
  out.spread = AliasTable(spread);
  return out;
}

Status check_rows(const schema::DecisionInputs& inputs) {
  for (std::size_t i = 0; i < inputs.engines.size(); ++i) {
    const EngineIndex engine = inputs.engines[i].engine;
    if (!engine.valid() || engine.at() >= most_engines) return invalid("a row of an impossible engine");
    if (i > 0 && engine <= inputs.engines[i - 1].engine)
      return invalid("rows that are not in the table's order");
  }
  if (!inputs.request_class.valid() || inputs.request_class.at() >= most_classes ||
      inputs.blocks > most_blocks || inputs.longest_blocks > inputs.blocks)
    return invalid("a request that cannot be");
  return {};
}

}  // namespace

schema::DecisionInputs inputs_of(const Surroundings& around, const Ask& ask, const Tried& tried, Instant now,
                                 std::uint64_t seed, const Decision& decision) {
  const View& view = around.view;
  schema::DecisionInputs out;
  out.request_class = ask.request_class;
  out.class_name = view.policy->at(ask.request_class).name.str();
  out.criticality = ask.criticality;
  out.policy = view.policy->hash;
  out.table = view.table->content;
  if (view.snapshot != nullptr) out.snapshot = view.snapshot->version;
  out.decided_at = now.time_since_epoch();
  out.seed = seed;
  out.plan_in_force = view.plan_in_force(now);
  if (out.plan_in_force) out.plan_as_of = view.as_of.time_since_epoch();
  out.routers = view.routers;
  const auto wide = [](float x) { return static_cast<double>(x); };
  out.prompt_tokens = wide(ask.prompt_tokens), out.output_tokens = wide(ask.output_tokens);
  out.context_tokens = wide(ask.context_tokens), out.uncached_tokens = wide(ask.uncached_tokens);
  out.block_tokens = wide(ask.block_tokens);
  LongestMatch longest;
  if (!ask.blocks.empty()) longest = longest_match(around, ask);
  out.blocks = static_cast<std::uint32_t>(ask.blocks.size());
  out.longest_blocks = static_cast<std::uint32_t>(longest.blocks);
  out.home = ask.home;
  out.pinned = ask.pinned;
  const ClassTable& table = view.at(ask.request_class);
  std::vector<EngineIndex> engines = table.engines;
  const bool keeps = ask.pinned.valid() && table.allowed.contains(ask.pinned) &&
                     view.at(ask.pinned).state != HealthState::gone && !table.eligible.contains(ask.pinned);
  if (keeps) engines.insert(std::lower_bound(engines.begin(), engines.end(), ask.pinned), ask.pinned);
  for (const EngineIndex engine : engines)
    out.engines.push_back(row_of(around, ask, tried, engine, longest, now));
  out.chosen = decision.engine;
  out.candidates = candidate_rows(decision, view, now);
  return out;
}

std::vector<schema::CandidateRow> candidate_rows(const Decision& decision, const View& view, Instant now) {
  std::vector<schema::CandidateRow> out;
  for (const Candidate& candidate : decision.considered()) out.push_back(row_of(candidate, view, now));
  return out;
}

Result<PastDecision> PastDecision::recall(const schema::DecisionInputs& inputs,
                                          std::shared_ptr<const policy::CompiledPolicy> policy) {
  if (const Status good = check_rows(inputs); !good) return tl::unexpected(good.error());
  if (policy == nullptr || policy->hash != inputs.policy)
    return fail(ErrorKind::conflict, fmt::format("decided under policy {}", inputs.policy.brief()),
                inputs.decision, "that policy is needed to decide again");
  std::size_t engines = inputs.engines.empty() ? 0 : inputs.engines.back().engine.at() + 1;
  if (inputs.pinned.valid() && inputs.pinned.at() < most_engines)
    engines = std::max(engines, inputs.pinned.at() + 1);
  PastDecision out;
  out.view_.policy = std::move(policy);
  out.now_ = instant_at(inputs.decided_at);
  out.seed_ = inputs.seed;
  if (inputs.plan_in_force) {
    out.view_.snapshot = std::make_shared<const schema::RoutingSnapshot>();
    // Recordings of versions before do not say it; in those a plan in force was followed whatever its age.
    out.view_.as_of = inputs.plan_as_of == Duration::zero() ? out.now_ : instant_at(inputs.plan_as_of);
  }
  out.view_.routers = std::max(1u, inputs.routers);
  out.view_.engines.resize(engines);
  out.loads_.now.resize(engines), out.loads_.then.resize(engines);
  out.penalties_.multipliers.assign(engines, 1.0);
  out.cache_.blocks.resize(engines);
  std::vector<std::pair<std::uint16_t, EngineIndex>> holders;
  for (const schema::InputRow& row : inputs.engines) {
    const std::size_t at = row.engine.at();
    out.view_.engines[at] = facts_of(row);
    out.loads_.now[at] = load_of(row.own_requests, row.own_prefill_tokens, row.own_kv_tokens);
    out.loads_.then[at] = load_of(row.then_requests, row.then_prefill_tokens, row.then_kv_tokens);
    out.penalties_.multipliers[at] = row.penalty;
    out.cache_.blocks[at] = std::min<std::uint64_t>(row.matched_blocks, inputs.longest_blocks);
    if (row.holder > 0) holders.emplace_back(row.holder, row.engine);
    if (row.tried) out.tried_.push(row.engine);
  }
  std::sort(holders.begin(), holders.end());
  out.cache_.answer.blocks = inputs.longest_blocks;
  for (const auto& [place, engine] : holders) out.cache_.answer.holders.push(engine);

  auto tables = std::make_shared<PlanTables>();
  tables->classes.resize(inputs.request_class.at() + 1);
  tables->classes.back() = table_of(inputs.engines, engines);
  out.view_.plan = std::move(tables);

  const auto narrow = [](double x) { return static_cast<float>(x); };
  out.ask_.request_class = inputs.request_class;
  out.ask_.criticality = inputs.criticality;
  out.ask_.prompt_tokens = narrow(inputs.prompt_tokens),
  out.ask_.output_tokens = narrow(inputs.output_tokens);
  out.ask_.context_tokens = narrow(inputs.context_tokens),
  out.ask_.uncached_tokens = narrow(inputs.uncached_tokens);
  out.ask_.block_tokens = narrow(inputs.block_tokens);
  if (inputs.home.valid() && inputs.home.at() < engines) out.ask_.home = inputs.home;
  if (inputs.pinned.valid() && inputs.pinned.at() < engines) out.ask_.pinned = inputs.pinned;
  out.blocks_.resize(inputs.blocks);
  return out;
}

Decision PastDecision::decide() const {
  Ask ask = ask_;
  ask.blocks = blocks_;
  Rng rng(seed_);
  Decision out;
  routing::decide(around(), ask, tried_, now_, rng, out);
  return out;
}

schema::CandidateRow PastDecision::cost_on(EngineIndex engine) const {
  Ask ask = ask_;
  ask.blocks = blocks_;
  Candidate candidate{};
  candidate.engine = engine;
  candidate.fate = schema::CandidateFate::not_drawn;
  candidate.penalty = static_cast<float>(penalties_.multiplier(engine, now_));
  candidate.matched_tokens =
      std::min(ask.prompt_tokens, static_cast<float>(cache_.blocks[engine.at()]) * ask.block_tokens);
  candidate.belief = belief_of(around(), ask, engine, now_);
  candidate.cost = cost_of(view_.at(engine), view_.policy->routing, ask, candidate.belief,
                           static_cast<double>(candidate.matched_tokens), view_.plan_in_force(now_));
  return row_of(candidate, view_, now_);
}

}  // namespace signalbox::routing
