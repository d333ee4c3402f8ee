#include "actors/cluster_router/routing/dispatcher.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::AttemptEnd;
using schema::RefuseReason;
using Phase = OpenRequest::Phase;

namespace {

/// Microseconds, as records keep them: at least 1, so that 0 can mean "never", and saturating.
std::uint32_t record_us(Duration d) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(d / 1us, 1, UINT32_MAX));
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------------
// the way of one request

Begun Dispatcher::State::begin(RequestFacts&& facts, Instant now) {
  const std::uint64_t sequence = next_sequence++;
  RecordCore& core = records.start(sequence);
  core.count = count_of(sequence);
  core.arrived_ns = now.time_since_epoch().count();
  const DecisionId id{life, core.count};
  const auto refuse_early = [&](RefuseReason reason, std::uint16_t status) {
    core.refused = reason;
    core.status = status;
    const bool passing = status == 503;
    const Duration later =
        passing ? (view ? view->policy->queue.retry_after_low : policy::Queue{}.retry_after_low)
                : Duration::zero();
    return Begun{{}, id, Refuse{reason, status, later}};
  };
  if (view == nullptr) return refuse_early(RefuseReason::no_snapshot, 503);
  if (refusing) return refuse_early(RefuseReason::draining, 503);

  policy::RequestAttributes attributes{facts.tenant, facts.model,        facts.version,
                                       facts.asked,  facts.session_hash, 0};
  attributes.estimated_tokens =
      static_cast<std::uint64_t>(facts.estimated_prompt_tokens()) + facts.max_output_tokens;
  const policy::Classified classified = view->policy->classify(attributes);
  core.rule = classified.rule;
  if (!classified.admitted())
    return refuse_early(classified.rule == policy::Rule::otherwise ? RefuseReason::policy_reject
                                                                   : RefuseReason::unknown_model,
                        classified.status);

  std::uint32_t slot;
  if (free_slots.empty()) {
    slot = static_cast<std::uint32_t>(requests.size());
    requests.emplace_back();
  } else {
    slot = free_slots.back();
    free_slots.pop_back();
  }
  OpenRequest& request = requests[slot];
  const Ticket ticket{slot, ++request.generation};
  ++open;

  const ClassTable& row = view->at(classified.index);
  const Duration whole =
      std::min(facts.deadline.value_or(view->policy->timeouts.total), view->policy->timeouts.total);
  request.phase = Phase::waiting;
  request.sequence = sequence;
  request.arrived = now;
  request.deadline = now + whole;
  request.criticality = classified.criticality;
  request.stateful = facts.stateful;
  request.session_hash = facts.session_hash;
  request.prompt_bytes = facts.prompt_bytes;
  request.ask = means[classified.index.at()].ask(facts, row, options.block_bytes);
  request.ask.request_class = classified.index;
  request.ask.home = sessions.find(facts.session_hash);
  request.blocks = std::move(facts.blocks);
  request.tried.clear();
  request.engine = {};
  request.attempts = 0;
  request.status = 0;

  core.request_class = static_cast<std::uint16_t>(classified.index.value);
  core.plan = contexts.back().number;
  core.prompt_tokens = request.ask.prompt_tokens;
  core.output_tokens = request.ask.output_tokens;
  core.degraded = !view->plan_in_force(now);
  if (view->snapshot != nullptr) {
    core.term = view->snapshot->version.term.counter;
    core.sequence = view->snapshot->version.sequence;
  }
  schema::DemandRow& demand = counts.demand(classified.index);
  ++demand.offered;
  demand.prompt_tokens += static_cast<std::uint64_t>(request.ask.prompt_tokens);

  if (!facts.pinned_engine.empty()) {
    const auto pinned = view->find_engine(facts.pinned_engine);
    if (!pinned) return {ticket, id, refuse(request, ticket, RefuseReason::no_engine, 503, now)};
    request.ask.pinned = *pinned;
  }
  return {ticket, id, admit(request, ticket, row, now)};
}

Verdict Dispatcher::State::admit(OpenRequest& request, Ticket ticket, const ClassTable& row, Instant now) {
  if (request.deadline <= now) return refuse(request, ticket, RefuseReason::deadline_passed, 504, now);
  if (view->plan_in_force(now) && !gate.admit(request.ask.request_class, row.admit))
    return refuse(request, ticket, RefuseReason::shed_by_plan, 429, now);
  budget.first_attempt();
  const Decision& chosen = choose(request, now);
  switch (chosen.outcome) {
    case Outcome::chosen:
      if (owed_to_others(chosen.engine, request.criticality)) return wait(request, ticket, now);
      return forward(request, chosen, now);
    case Outcome::all_at_limit: return wait(request, ticket, now);
    case Outcome::none_left:
    case Outcome::none_eligible: break;
  }
  return refuse(request, ticket, RefuseReason::no_engine, 503, now);
}

Verdict Dispatcher::State::wait(OpenRequest& request, Ticket ticket, Instant now) {
  const policy::Queue& queue = view->policy->queue;
  const bool retrying = request.attempts > 0;
  if (!retrying && (queue.depth == 0 || queue.max_wait <= Duration::zero() || outranked(request)))
    return refuse(request, ticket, RefuseReason::shed_by_limit, 429, now);
  request.phase = Phase::waiting;
  const Waiting place{ticket, request.ask.request_class, request.criticality,
                      retrying || request.ask.pinned.valid(),
                      std::min(now + queue.max_wait, request.deadline)};
  const auto given_up = room.add(place, queue.depth);
  if (given_up && given_up->ticket == ticket)
    return refuse(request, ticket, retrying ? RefuseReason::retries_exhausted : RefuseReason::queue_full,
                  retrying ? 503 : 429, now);
  if (given_up) evicted.push_back(given_up->ticket);
  return Wait{place.until};
}

const Decision& Dispatcher::State::choose(OpenRequest& request, Instant now) {
  Ask ask = request.ask;
  ask.blocks = request.blocks;
  const std::uint64_t seed = seed_of(request.sequence, request.attempts);
  Rng draws(seed);
  decide(surroundings(), ask, request.tried, now, draws, decision);
  if (RecordCore* core = record_of(request)) {
    core->seed = seed;
    core->sticky = decision.sticky;
    note_candidates(decision, *view, now, records.detail(request.sequence));
  }
  return decision;
}

Forward Dispatcher::State::forward(OpenRequest& request, const Decision& chosen, Instant now) {
  const Candidate& candidate = chosen.candidates[chosen.chosen];
  const float missing = std::max(0.0f, request.ask.prompt_tokens - candidate.matched_tokens);
  request.engine = chosen.engine;
  request.hold = loads.take(
      chosen.engine,
      {static_cast<std::uint32_t>(missing), static_cast<std::uint32_t>(missing + request.ask.output_tokens)},
      now);
  request.phase = Phase::sent;
  request.matched_tokens = candidate.matched_tokens;
  request.status = 0;
  request.began = now;
  request.first_byte = never_yet;
  if (++request.attempts == 1) ++counts.demand(request.ask.request_class).admitted;
  cache.sent(chosen.engine, request.blocks);
  counts.sent(chosen.engine, request.blocks);
  sessions.set(request.session_hash, chosen.engine);

  if (RecordCore* core = record_of(request)) {
    core->attempts = static_cast<std::uint8_t>(request.attempts);
    AttemptCore& attempt = core->kept[request.attempts > 1 ? 1 : 0];
    attempt = AttemptCore{};
    attempt.engine = chosen.engine.value;
    attempt.began_us = record_us(now - request.arrived);
  }
  const policy::Timeouts& limits = view->policy->timeouts;
  const Duration left = std::max(Duration{1ms}, request.deadline - now);
  return {chosen.engine,
          request.attempts,
          std::min(limits.connect, left),
          std::min(limits.first_byte, left),
          limits.gap,
          left};
}

Refuse Dispatcher::State::refuse(OpenRequest& request, Ticket ticket, RefuseReason reason,
                                 std::uint16_t status, Instant now) {
  if (request.ask.request_class.valid() && request.attempts == 0)
    ++counts.demand(request.ask.request_class).shed;
  if (RecordCore* core = record_of(request)) {
    core->refused = reason;
    core->status = status;
  }
  Refuse answer{reason, status, Duration::zero()};
  if (status == 429 || status == 503)
    answer.retry_after = drain_rate.retry_after(room.all().size(), view->policy->queue, now, rng);
  close(request, ticket, now);
  return answer;
}

void Dispatcher::State::end_attempt(OpenRequest& request, AttemptEnd end, std::uint64_t output_tokens,
                                    Instant now) {
  if (request.engine.valid())  // else the fleet table lost it meanwhile
    counts.ended({request.engine, request.ask.request_class, end, request.arrived, request.began,
                  request.first_byte, now, output_tokens});
  loads.release(request.hold, now);
  if (RecordCore* core = record_of(request)) {
    AttemptCore& attempt = core->kept[request.attempts > 1 ? 1 : 0];
    attempt.end = end;
    attempt.status = request.status;
    attempt.ended_us = record_us(now - request.arrived);
    if (request.first_byte != never_yet)
      attempt.first_byte_us = record_us(request.first_byte - request.arrived);
  }
}

/// After an attempt that failed before its first byte: where to next, if anywhere. Ends the attempt only if it goes on.
std::optional<Verdict> Dispatcher::State::retry(OpenRequest& request, Ticket ticket, AttemptEnd end,
                                                Instant now) {
  const FailedAttempt failed{end,
                             request.status,
                             request.attempts,
                             request.stateful,
                             now - request.arrived,
                             request.deadline - request.arrived};
  if (may_retry(view->policy->retry, failed, budget) != RetryAnswer::yes) return std::nullopt;
  if (request.deadline <= now || request.ask.pinned.valid()) return std::nullopt;
  if (request.engine.valid() && !request.tried.push(request.engine)) return std::nullopt;
  const Decision& chosen = choose(request, now);
  const bool go = chosen.outcome == Outcome::chosen && !owed_to_others(chosen.engine, request.criticality);
  const bool stay = chosen.outcome == Outcome::chosen || chosen.outcome == Outcome::all_at_limit;
  if (!stay) return std::nullopt;
  budget.take();
  end_attempt(request, end, 0, now);
  if (go) return forward(request, chosen, now);
  return wait(request, ticket, now);
}

void Dispatcher::State::learn(const OpenRequest& request, const Usage& usage) {
  ClassMeans& mean = means[request.ask.request_class.at()];
  const bool counted = usage.prompt_tokens > 0;
  const double prompt =
      counted ? static_cast<double>(usage.prompt_tokens) : static_cast<double>(request.ask.prompt_tokens);
  const double cached = usage.cached_tokens ? static_cast<double>(*usage.cached_tokens)
                                            : static_cast<double>(request.matched_tokens);
  mean.prompt.add(prompt);
  mean.uncached.add(std::max(0.0, prompt - cached));
  mean.output.add(static_cast<double>(usage.output_tokens));
  if (counted && request.prompt_bytes > 0)
    mean.prompt_bytes_per_token.add(static_cast<double>(request.prompt_bytes) / prompt);

  schema::DemandRow& demand = counts.demand(request.ask.request_class);
  ++demand.finished;
  demand.output_tokens += usage.output_tokens;
  demand.cached_tokens += usage.cached_tokens.value_or(0);
}

void Dispatcher::State::close(OpenRequest& request, Ticket ticket, Instant now) {
  if (RecordCore* core = record_of(request)) core->took_us = record_us(now - request.arrived);
  if (request.attempts > 0) drain_rate.left(now);
  request.phase = Phase::closed;
  request.ask = Ask{};
  request.blocks = PromptBlocks{};
  free_slots.push_back(ticket.slot);
  --open;
}

// ------------------------------------------------------------------------------------------------------------------
// those who wait

/// Another request that matters at least as much waits for a place there.
bool Dispatcher::State::owed_to_others(EngineIndex engine, Criticality criticality) const {
  return std::ranges::any_of(room.all(), [&](const Waiting& w) {
    return !w.alone && w.criticality >= criticality && view->at(w.request_class).eligible.contains(engine);
  });
}

/// It would be the first to be refused: something that matters more waits for the same engines.
bool Dispatcher::State::outranked(const OpenRequest& request) const {
  if (request.criticality != Criticality::sheddable) return false;
  const EngineSet& mine = view->at(request.ask.request_class).eligible;
  return std::ranges::any_of(room.all(), [&](const Waiting& w) {
    return w.criticality > request.criticality && view->at(w.request_class).eligible.intersects(mine);
  });
}

std::optional<Ready> Dispatcher::State::next_ready(Instant now) {
  while (!evicted.empty()) {
    const Ticket ticket = evicted.back();
    evicted.pop_back();
    OpenRequest* request = find(ticket);
    if (request == nullptr || request->phase != Phase::waiting) continue;
    const bool retrying = request->attempts > 0;
    return Ready{ticket, refuse(*request, ticket,
                                retrying ? RefuseReason::retries_exhausted : RefuseReason::queue_full,
                                retrying ? 503 : 429, now)};
  }
  if (const auto expired = room.expired(now)) {
    OpenRequest& request = requests[expired->ticket.slot];
    room.remove(expired->ticket);
    if (request.deadline <= now)
      return Ready{expired->ticket,
                   refuse(request, expired->ticket, RefuseReason::deadline_passed, 504, now)};
    return Ready{expired->ticket, refuse(request, expired->ticket, RefuseReason::queue_timeout, 429, now)};
  }
  return first_that_may_go(now);
}

std::optional<Ready> Dispatcher::State::first_that_may_go(Instant now) {
  FixedVector<ClassIndex, 32> blocked;  // more classes than this wait: the rest is asked one by one
  for (const Waiting& w : room.all()) {
    if (!w.alone && blocked.contains(w.request_class)) continue;
    OpenRequest& request = requests[w.ticket.slot];
    const Decision& chosen = choose(request, now);
    if (chosen.outcome == Outcome::all_at_limit) {
      if (!w.alone) blocked.push(w.request_class);
      continue;
    }
    const Ticket ticket = w.ticket;
    room.remove(ticket);
    if (chosen.outcome == Outcome::chosen) return Ready{ticket, forward(request, chosen, now)};
    const bool retrying = request.attempts > 0;
    return Ready{ticket,
                 refuse(request, ticket, retrying ? RefuseReason::retries_exhausted : RefuseReason::no_engine,
                        503, now)};
  }
  return std::nullopt;
}

OpenRequest* Dispatcher::State::find(Ticket ticket) {
  if (ticket.slot >= requests.size()) return nullptr;
  OpenRequest& request = requests[ticket.slot];
  return request.generation == ticket.generation && request.phase != Phase::closed ? &request : nullptr;
}

// ------------------------------------------------------------------------------------------------------------------
// the public face

Dispatcher::Dispatcher(DispatcherOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Dispatcher::~Dispatcher() = default;
Dispatcher::Dispatcher(Dispatcher&&) noexcept = default;
Dispatcher& Dispatcher::operator=(Dispatcher&&) noexcept = default;

void Dispatcher::adopt(std::shared_ptr<const View> view, Instant now) { state_->adopt(std::move(view), now); }
const std::shared_ptr<const View>& Dispatcher::view() const { return state_->view; }

Begun Dispatcher::begin(RequestFacts facts, Instant now) { return state_->begin(std::move(facts), now); }

void Dispatcher::connected(Ticket ticket, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::sent || !request->engine.valid()) return;
  state_->counts.connected(request->engine, now - request->began);
}

Verdict Dispatcher::failed(Ticket ticket, AttemptEnd end, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::sent)
    return Refuse{RefuseReason::retries_exhausted, 503, Duration::zero()};
  if (const auto kind = failure_of(end, 0); kind && request->engine.valid())
    state_->penalties.failure(request->engine, *kind, now);
  if (auto next = state_->retry(*request, ticket, end, now)) return *next;
  state_->end_attempt(*request, end, 0, now);
  if (request->deadline <= now)
    return state_->refuse(*request, ticket, RefuseReason::deadline_passed, 504, now);
  const std::uint16_t status = end == AttemptEnd::connect_error        ? 503
                               : end == AttemptEnd::first_byte_timeout ? 504
                                                                       : 502;
  return state_->refuse(*request, ticket, RefuseReason::retries_exhausted, status, now);
}

std::optional<Verdict> Dispatcher::head(Ticket ticket, std::uint16_t status, Duration retry_after,
                                        Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::sent) return std::nullopt;
  request->status = status;
  const AttemptEnd end = end_of_status(status);
  if (request->engine.valid()) {
    if (const auto kind = failure_of(end, status)) state_->penalties.failure(request->engine, *kind, now);
    if (end == AttemptEnd::overloaded) state_->penalties.retry_after(request->engine, retry_after, now);
  }
  if (status >= 400)
    if (auto next = state_->retry(*request, ticket, end, now)) return next;
  request->phase = Phase::answering;
  return std::nullopt;
}

void Dispatcher::first_byte(Ticket ticket, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::answering || request->first_byte != never_yet) return;
  request->first_byte = now;
  state_->loads.prefilled(request->hold, now);
  request->blocks = PromptBlocks{};  // only a retry would have needed them
}

void Dispatcher::finished(Ticket ticket, AttemptEnd end, const Usage& usage, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || (request->phase != Phase::sent && request->phase != Phase::answering)) return;
  // What the head said was judged when it came; here only what happened afterwards is new evidence.
  if (const auto kind = failure_of(end, 0); kind && request->engine.valid())
    state_->penalties.failure(request->engine, *kind, now);
  const AttemptEnd outcome = end == AttemptEnd::succeeded ? end_of_status(request->status) : end;
  state_->end_attempt(*request, outcome, usage.output_tokens, now);
  if (outcome == AttemptEnd::succeeded && request->ask.request_class.valid()) state_->learn(*request, usage);
  if (RecordCore* core = state_->record_of(*request)) {
    core->status = request->status;
    core->output_tokens = static_cast<float>(usage.output_tokens);
  }
  state_->close(*request, ticket, now);
}

void Dispatcher::client_left(Ticket ticket, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr) return;
  if (request->phase == Phase::waiting)
    state_->room.remove(ticket);
  else
    state_->end_attempt(*request, AttemptEnd::client_left, 0, now);
  if (RecordCore* core = state_->record_of(*request)) core->status = 499;  // as proxies write it
  state_->close(*request, ticket, now);
}

void Dispatcher::drain_and_refuse() { state_->refusing = true; }

std::optional<Ready> Dispatcher::next_ready(Instant now) {
  if (state_->view == nullptr) return std::nullopt;
  return state_->next_ready(now);
}
Instant Dispatcher::next_wake() const {
  return state_->evicted.empty() ? state_->room.earliest() : never_yet;
}

Batch Dispatcher::drain(Instant now) {
  State& s = *state_;
  Batch batch;
  batch.loop = s.options.loop;
  batch.number = s.next_batch++;
  batch.from = s.drained_at == never_yet ? now : s.drained_at;
  batch.until = now;
  batch.block_bytes = s.options.block_bytes;
  batch.open = static_cast<std::uint32_t>(s.open);
  batch.waiting = static_cast<std::uint32_t>(s.room.all().size());
  if (s.view != nullptr) {
    batch.policy = s.view->policy->hash;
    batch.table = s.view->table->content;
  }
  s.counts.drain(s.loads, s.penalties, now, batch);
  s.penalties.carried_by(batch.number, now);
  s.drained_at = now;
  return batch;
}

std::size_t Dispatcher::open() const { return state_->open; }
std::size_t Dispatcher::waiting() const { return state_->room.all().size(); }

DecisionId Dispatcher::decision_of(Ticket ticket) const {
  const OpenRequest* request = state_->find(ticket);
  return request == nullptr ? DecisionId{} : DecisionId{state_->life, state_->count_of(request->sequence)};
}

std::optional<schema::DecisionRecord> Dispatcher::record(const DecisionId& id, Instant now) const {
  return state_->explain_past(id, now);
}

schema::DecisionRecord Dispatcher::would_decide(const RequestFacts& facts, Instant now) const {
  return state_->explain_next(facts, now);
}

}  // namespace signalbox::routing
