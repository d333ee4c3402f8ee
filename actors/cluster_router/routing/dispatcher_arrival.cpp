// A dispatcher and the arrival of a request: classify, admit, decide, send it off or refuse it.
#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::RefuseReason;
using Phase = OpenRequest::Phase;

Begun Dispatcher::State::begin(RequestFacts&& facts, Instant now) {
  const std::uint64_t sequence = next_sequence++;
  RecordCore& core = records.start(sequence);
  core.count = count_of(sequence);
  core.arrived_ns = now.time_since_epoch().count();
  const DecisionId id{life, core.count};
  if (view == nullptr) return {{}, id, refuse_early(core, RefuseReason::no_snapshot, 503)};
  if (refusing) return {{}, id, refuse_early(core, RefuseReason::draining, 503)};

  const policy::Classified classified = view->policy->classify(attributes_of(facts));
  core.rule = classified.rule;
  if (!classified.admitted()) {
    const bool known = classified.rule == policy::Rule::otherwise;
    return {{},
            id,
            refuse_early(core, known ? RefuseReason::policy_reject : RefuseReason::unknown_model,
                         classified.status)};
  }
  const Ticket ticket = new_ticket();
  OpenRequest& request = requests[ticket.slot];
  open_request(request, std::move(facts), classified, sequence, now);
  note_opened(core, request, now);
  if (request.pin_unknown) return {ticket, id, refuse(request, ticket, RefuseReason::no_engine, 503, now)};
  return {ticket, id, admit(request, ticket, view->at(classified.index), now)};
}

Refuse Dispatcher::State::refuse_early(RecordCore& core, RefuseReason reason, std::uint16_t status) {
  core.refused = reason;
  core.status = status;
  core.took_us = 1;
  file(core, {});
  const policy::Queue& queue = view ? view->policy->queue : policy::Queue{};
  return {reason, status, status == 503 ? queue.retry_after_low : Duration::zero()};
}

Ticket Dispatcher::State::new_ticket() {
  std::uint32_t slot;
  if (free_slots.empty()) {
    slot = static_cast<std::uint32_t>(requests.size());
    requests.emplace_back();
  } else {
    slot = free_slots.back();
    free_slots.pop_back();
  }
  ++open;
  return {slot, ++requests[slot].generation};
}

void Dispatcher::State::open_request(OpenRequest& request, RequestFacts&& facts,
                                     const policy::Classified& classified, std::uint64_t sequence,
                                     Instant now) {
  const Duration longest = view->policy->timeouts.total;
  request.phase = Phase::waiting;
  request.sequence = sequence;
  request.arrived = now;
  request.deadline = now + std::min(facts.deadline.value_or(longest), longest);
  request.criticality = classified.criticality;
  request.stateful = facts.stateful;
  request.stream = facts.stream;
  request.tenant = tenant_key(0, facts.tenant);
  request.session_hash = facts.session_hash;
  request.prompt_bytes = facts.prompt_bytes;
  request.ask = ask_of(facts, classified);
  request.pin_unknown = !facts.pinned_engine.empty() && !request.ask.pinned.valid();
  request.blocks = std::move(facts.blocks);
  request.tried.clear();
  request.charged_tokens = 0;
  request.continued_tokens = 0;
  request.engine = {};
  request.attempts = request.number = 0;
  request.status = 0;
}

Ask Dispatcher::State::ask_of(const RequestFacts& facts, const policy::Classified& classified) const {
  const ClassIndex request_class = classified.index;
  Ask ask = means[request_class.at()].ask(facts, view->at(request_class), options.block_bytes);
  ask.request_class = request_class;
  ask.criticality = classified.criticality;
  ask.home = sessions.find(facts.session_hash);
  if (!facts.pinned_engine.empty())
    ask.pinned = view->find_engine(facts.pinned_engine).value_or(EngineIndex{});
  return ask;
}

void Dispatcher::State::note_opened(RecordCore& core, const OpenRequest& request, Instant now) {
  const ClassIndex request_class = request.ask.request_class;
  core.request_class = static_cast<std::uint16_t>(request_class.value);
  core.plan = contexts.back().number;
  core.names = contexts.back().names;
  core.prompt_tokens = request.ask.prompt_tokens;
  core.output_tokens = request.ask.output_tokens;
  core.degraded = !view->plan_in_force(now);
  if (view->snapshot != nullptr) {
    core.term = view->snapshot->version.term.counter;
    core.sequence = view->snapshot->version.sequence;
    core.snapshot_age_s = static_cast<float>(std::max(0.0, to_seconds(now - view->as_of)));
  }
  schema::DemandRow& demand = counts.demand(request_class);
  ++demand.offered;
  floors.offered(request_class, view->policy->at(request_class).floor_share);
  demand.prompt_tokens += static_cast<std::uint64_t>(request.ask.prompt_tokens);
  if (!request.blocks.empty()) counts.came(request_class, request.blocks);
}

Verdict Dispatcher::State::admit(OpenRequest& request, Ticket ticket, const ClassTable& row, Instant now) {
  if (request.deadline <= now) return refuse(request, ticket, RefuseReason::deadline_passed, 504, now);
  if (view->plan_fresh(now) && !gate.admit(request.ask.request_class, row.admit))
    return all_gone(row) ? refuse(request, ticket, RefuseReason::no_engine, 503, now)
                         : refuse(request, ticket, RefuseReason::shed_by_plan, 429, now);
  budget.first_attempt();
  const Decision& chosen = choose(request, now);
  switch (chosen.outcome) {
    case Outcome::chosen:
      if (!owed_to_others(chosen.engine, request)) return forward(request, chosen, now);
      loads.give_back(chosen.engine);
      return wait(request, ticket, now);
    case Outcome::all_at_limit: return wait(request, ticket, now);
    case Outcome::none_left:
    case Outcome::none_eligible: break;
  }
  return refuse(request, ticket, RefuseReason::no_engine, 503, now);
}

/// Nobody who may serve the class lives: it is not contended, there is no capacity.
bool Dispatcher::State::all_gone(const ClassTable& row) const {
  return std::ranges::all_of(row.engines,
                             [this](EngineIndex e) { return view->at(e).state == HealthState::gone; });
}

/// Decides, and takes a place with the engine that is chosen: forward() uses it, or it is given back.
const Decision& Dispatcher::State::choose(OpenRequest& request, Instant now) {
  constexpr int most_races = 8;
  for (int i = 0; i < most_races; ++i) {
    const std::size_t said = publishing.read.size();
    look(request, now);
    if (decision.outcome != Outcome::chosen) return decision;
    if (loads.reserve(decision.engine, view->at(decision.engine).in_flight_cap)) return decision;
    publishing.read.erase(publishing.read.begin() + static_cast<std::ptrdiff_t>(said), publishing.read.end());
  }
  decision.outcome = Outcome::all_at_limit;
  return decision;
}

const Decision& Dispatcher::State::look(OpenRequest& request, Instant now) {
  Ask ask = request.ask;
  ask.blocks = request.blocks;
  ask.placed = view->plan->groups.find(ask.blocks, ask.block_tokens);
  const std::uint64_t seed = seed_of(request.sequence, request.attempts);
  Rng draws(seed);
  decide(surroundings(), ask, request.tried, now, draws, decision);
  note(request, [&](RecordCore& core) {
    core.seed = seed;
    core.sticky = decision.sticky;
  });
  if (record_of(request)) note_candidates(decision, *view, now, records.detail(request.sequence));
  if (request.lasting) {
    RecordDetail detail;
    note_candidates(decision, *view, now, detail);
    request.lasting->costs = costs_of(detail);
  }
  if (view->publish.inputs) publish_inputs(request, ask, seed, now);
  return decision;
}

Refuse Dispatcher::State::refuse(OpenRequest& request, Ticket ticket, RefuseReason reason,
                                 std::uint16_t status, Instant now) {
  if (request.ask.request_class.valid() && request.attempts == 0)
    ++counts.demand(request.ask.request_class).shed;
  note(request, [&](RecordCore& core) {
    core.refused = reason;
    core.status = status;
  });
  Refuse answer{reason, status, Duration::zero()};
  if (status == 429 || status == 503)
    answer.retry_after = drain_rate.retry_after(room.size(), view->policy->queue, now, rng);
  close(request, ticket, now);
  return answer;
}

void Dispatcher::State::close(OpenRequest& request, Ticket ticket, Instant now) {
  if (request.rival) hedge_over(request, request.rival->number, schema::AttemptEnd::superseded, 0, now);
  note(request, [&](RecordCore& core) { core.took_us = record_us(now - request.arrived); });
  file_end(request);
  if (view->publish.decisions) publish_end(request.sequence, now);
  if (request.attempts > 0) drain_rate.left(now);
  request.phase = Phase::closed;
  request.ask = Ask{};
  request.blocks = PromptBlocks{};
  request.lasting.reset();
  free_slots.push_back(ticket.slot);
  --open;
}

OpenRequest* Dispatcher::State::find(Ticket ticket) {
  if (ticket.slot >= requests.size()) return nullptr;
  OpenRequest& request = requests[ticket.slot];
  return request.generation == ticket.generation && request.phase != Phase::closed ? &request : nullptr;
}

}  // namespace signalbox::routing
