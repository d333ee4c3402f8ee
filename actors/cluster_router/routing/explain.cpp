#include "actors/cluster_router/routing/explain.hpp"

#include <algorithm>

#include "actors/cluster_router/routing/eligibility.hpp"

namespace signalbox::routing {

using schema::CandidateFate;
using schema::CandidateRow;

namespace {

/// The fate of an engine that was no candidate.
CandidateFate fate_of(const policy::CompiledPolicy& policy, const schema::FleetTable& table,
                      const ClassTable& row, ClassIndex request_class, EngineIndex engine,
                      HealthState state) {
  if (!serves(table.engines[engine.at()], policy.at(policy.at(request_class).model).name))
    return CandidateFate::wrong_model;
  if (!row.allowed.contains(engine)) return CandidateFate::not_allowed;
  if (row.eligible.contains(engine)) return CandidateFate::not_drawn;
  switch (state) {
    case HealthState::draining: return CandidateFate::draining;
    case HealthState::suspect: return CandidateFate::suspect;
    case HealthState::gone:
    case HealthState::ready:
    case HealthState::degraded:
    case HealthState::starting: return CandidateFate::gone;
  }
  return CandidateFate::gone;
}

double planned_weight(const schema::RoutingSnapshot* snapshot, ClassIndex request_class, EngineIndex engine) {
  if (snapshot == nullptr) return 0;
  const auto& rows = snapshot->weights;
  const auto key = std::pair(request_class, engine);
  const auto at = std::lower_bound(rows.begin(), rows.end(), key, [](const auto& row, const auto& k) {
    return std::pair(row.request_class, row.engine) < k;
  });
  return at != rows.end() && std::pair(at->request_class, at->engine) == key ? at->weight : 0;
}

void set_costs(CandidateRow& row, const CostParts& cost) {
  row.network_s = cost.network;
  row.queue_s = cost.queue;
  row.prefill_s = cost.prefill;
  row.decode_s = cost.decode;
  row.price_s = cost.price;
  row.total_s = cost.total();
}

Duration signal_age(const EngineFacts& facts, Instant now) {
  return facts.described_at == never_yet ? Duration::zero()
                                         : std::max(Duration::zero(), now - facts.described_at);
}

/// The chosen one first, then candidates by cost, then the rest as they are.
void put_chosen_first(std::vector<CandidateRow>& rows, std::size_t candidates) {
  std::stable_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(candidates),
                   [](const CandidateRow& a, const CandidateRow& b) {
                     const auto rank = [](const CandidateRow& r) {
                       return r.fate == CandidateFate::chosen ? 0 : r.fate == CandidateFate::dearer ? 1 : 2;
                     };
                     return std::pair(rank(a), a.total_s) < std::pair(rank(b), b.total_s);
                   });
}

CandidateRow from_candidate(const Candidate& candidate, const View& view, ClassIndex request_class,
                            Instant now) {
  CandidateRow row;
  row.engine = candidate.engine;
  row.fate = candidate.fate;
  row.weight = planned_weight(view.snapshot.get(), request_class, candidate.engine);
  row.penalty = static_cast<double>(candidate.penalty);
  row.matched_tokens = static_cast<double>(candidate.matched_tokens);
  row.inflight = static_cast<double>(candidate.belief.requests);
  row.signal_age = signal_age(view.at(candidate.engine), now);
  set_costs(row, candidate.cost);
  return row;
}

CandidateRow from_rest(const Surroundings& around, const Ask& ask, const Tried& tried, EngineIndex engine,
                       Instant now) {
  const View& view = around.view;
  const EngineFacts& facts = view.at(engine);
  const ClassTable& table = view.at(ask.request_class);
  CandidateRow row;
  row.engine = engine;
  row.fate = fate_of(*view.policy, *view.table, table, ask.request_class, engine, facts.state);
  row.weight = planned_weight(view.snapshot.get(), ask.request_class, engine);
  row.penalty = around.penalties.multiplier(engine, now);
  row.signal_age = signal_age(facts, now);
  if (row.fate == CandidateFate::not_drawn && tried.contains(engine)) row.fate = CandidateFate::tried;
  if (row.fate == CandidateFate::wrong_model || row.fate == CandidateFate::not_allowed) return row;

  const Belief belief = belief_of(around, ask, engine, now);
  const auto blocks = static_cast<float>(around.cache.matched(engine, ask.blocks));
  const auto matched = static_cast<double>(std::min(ask.prompt_tokens, blocks * ask.block_tokens));
  row.matched_tokens = matched;
  row.inflight = static_cast<double>(belief.requests);
  set_costs(row, cost_of(facts, view.policy->routing, ask, belief, matched, view.plan_in_force(now)));
  if (row.fate == CandidateFate::not_drawn && no_room(around, ask, engine, belief))
    row.fate = CandidateFate::at_limit;
  return row;
}

}  // namespace

std::vector<CandidateRow> explain(const Surroundings& around, const Ask& ask, const Tried& tried, Instant now,
                                  std::uint64_t seed) {
  Decision decision;
  Rng rng(seed);
  decide(around, ask, tried, now, rng, decision);

  std::vector<CandidateRow> rows;
  std::vector<bool> listed(around.view.engines.size());
  for (const Candidate& candidate : decision.considered()) {
    rows.push_back(from_candidate(candidate, around.view, ask.request_class, now));
    listed[candidate.engine.at()] = true;
  }
  put_chosen_first(rows, rows.size());
  for (std::size_t e = 0; e < listed.size(); ++e)
    if (!listed[e]) rows.push_back(from_rest(around, ask, tried, EngineIndex(e), now));
  return rows;
}

std::vector<CandidateRow> explain_recorded(const RecordCore& core, const RecordDetail& detail,
                                           const PlanContext* plan) {
  std::vector<CandidateRow> rows;
  const ClassIndex request_class(core.request_class);
  for (std::size_t i = 0; i < detail.count; ++i) {
    const CandidateCore& kept = detail.candidates[i];
    CandidateRow row;
    row.engine.value = kept.engine;
    row.fate = kept.fate;
    if (plan != nullptr) row.weight = planned_weight(plan->snapshot.get(), request_class, row.engine);
    row.penalty = static_cast<double>(kept.penalty);
    row.matched_tokens = static_cast<double>(kept.matched_tokens);
    row.inflight = static_cast<double>(kept.requests);
    row.signal_age = from_seconds(std::max(0.0, static_cast<double>(kept.signal_age_s)));
    const auto wide = [](float x) { return static_cast<double>(x); };
    set_costs(row, {wide(kept.network_s), wide(kept.queue_s), wide(kept.prefill_s), wide(kept.decode_s),
                    wide(kept.price_s)});
    rows.push_back(row);
  }
  const std::size_t candidates = rows.size();
  put_chosen_first(rows, candidates);
  if (plan == nullptr || core.request_class >= plan->tables->classes.size()) return rows;
  for (std::size_t e = 0; e < plan->states.size(); ++e) {
    const auto is_this = [&](const CandidateRow& r) { return r.engine == EngineIndex(e); };
    if (std::any_of(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(candidates), is_this)) continue;
    CandidateRow row;
    row.engine = EngineIndex(e);
    row.fate = fate_of(*plan->policy, *plan->table, plan->tables->classes[core.request_class], request_class,
                       row.engine, plan->states[e]);
    if (core.attempts > 1 && core.kept[0].engine == e) row.fate = CandidateFate::tried;
    row.weight = planned_weight(plan->snapshot.get(), request_class, row.engine);
    rows.push_back(row);
  }
  return rows;
}

void note_candidates(const Decision& decision, const View& view, Instant now, RecordDetail& out) {
  out.count = 0;
  const auto note = [&](const Candidate& c) {
    const EngineFacts& facts = view.at(c.engine);
    const bool read = facts.described_at != never_yet;
    const auto narrow = [](double x) { return static_cast<float>(x); };
    out.candidates[out.count++] = {c.engine.value,
                                   c.fate,
                                   c.weight,
                                   c.penalty,
                                   c.matched_tokens,
                                   c.belief.requests,
                                   narrow(c.cost.network),
                                   narrow(c.cost.queue),
                                   narrow(c.cost.prefill),
                                   narrow(c.cost.decode),
                                   narrow(c.cost.price),
                                   read ? narrow(to_seconds(now - facts.described_at)) : -1.0f};
  };
  if (decision.outcome == Outcome::chosen) note(decision.candidates[decision.chosen]);
  for (const Candidate& candidate : decision.considered())
    if (candidate.fate != CandidateFate::chosen && out.count < recorded_candidates) note(candidate);
}

}  // namespace signalbox::routing
