// A dispatcher and the attempts of a request: what they take, what came of them, whether another one follows.
#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::AttemptEnd;
using schema::RefuseReason;
using Phase = OpenRequest::Phase;

namespace {

/// One more token of each sequence there, this one included.
float expected_token_s(const EngineFacts& facts, const Ask& ask, const Belief& belief) {
  const double sequence_s = facts.b + facts.k * static_cast<double>(ask.context_tokens);
  return static_cast<float>(facts.a + (static_cast<double>(belief.requests) + 1) * sequence_s);
}

}  // namespace

Forward Dispatcher::State::forward(OpenRequest& request, const Decision& chosen, Instant now) {
  const Candidate& candidate = chosen.candidates[chosen.chosen];
  const float missing = std::max(0.0f, request.ask.prompt_tokens - candidate.matched_tokens);
  const EngineFacts& facts = view->at(chosen.engine);
  request.engine = chosen.engine;
  request.ahead = loads.own(chosen.engine).requests;
  request.expected_token_s = expected_token_s(facts, request.ask, candidate.belief);
  request.expected_first_s =
      static_cast<float>(facts.network_s + facts.c * static_cast<double>(missing)) + request.expected_token_s;
  request.expected_wait_s =
      static_cast<float>(facts.c * static_cast<double>(candidate.belief.prefill_tokens));
  request.hold =
      loads.take(chosen.engine,
                 {static_cast<std::uint32_t>(missing),
                  static_cast<std::uint32_t>(request.ask.prompt_tokens + request.ask.output_tokens)},
                 now);
  limits.sent(chosen.engine, request.ahead + 1, loads.limit(chosen.engine, facts.in_flight_cap), now);
  request.phase = Phase::sent;
  request.matched_tokens = candidate.matched_tokens;
  request.status = 0;
  request.began = now;
  request.first_byte = never_yet;
  request.number = ++request.attempts;
  if (request.number == 1) {
    ++counts.demand(request.ask.request_class).admitted;
    floors.admitted(request.ask.request_class);
  }
  charge(request, static_cast<double>(missing + request.ask.output_tokens), now);
  cache.sent(chosen.engine, request.blocks);
  counts.sent(chosen.engine, request.blocks);
  sessions.set(request.session_hash, chosen.engine);

  note(request, [&](RecordCore& core) {
    core.attempts = static_cast<std::uint8_t>(request.attempts);
    AttemptCore& attempt = core.kept[request.number > 1 ? 1 : 0];
    attempt = AttemptCore{};
    attempt.engine = chosen.engine.value;
    attempt.began_us = record_us(now - request.arrived);
  });
  const policy::Timeouts& times = view->policy->timeouts;
  const Duration left = std::max(Duration{1ms}, request.deadline - now);
  return {chosen.engine,
          request.attempts,
          std::min(times.connect, left),
          std::min(times.first_byte, left),
          times.gap,
          left,
          hedge_delay(request)};
}

void Dispatcher::State::end_attempt(OpenRequest& request, AttemptEnd end, std::uint64_t output_tokens,
                                    Instant now) {
  if (request.engine.valid())  // else the fleet table lost it meanwhile
    counts.ended({request.engine, request.ask.request_class, end, request.arrived, request.began,
                  request.first_byte, now, output_tokens});
  loads.release(request.hold, now);
  note(request, [&](RecordCore& core) {
    AttemptCore& attempt = core.kept[request.number > 1 ? 1 : 0];
    attempt.end = end;
    attempt.status = request.status;
    attempt.ended_us = record_us(now - request.arrived);
    if (request.first_byte != never_yet)
      attempt.first_byte_us = record_us(request.first_byte - request.arrived);
  });
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
  const RetryAnswer may = may_retry(view->policy->retry, failed, budget);
  if (may != RetryAnswer::yes && may != RetryAnswer::no_budget) return std::nullopt;
  if (request.deadline <= now || request.ask.pinned.valid()) return std::nullopt;
  if (!request.ask.request_class.valid()) return std::nullopt;  // the policy in force has no such class
  if (may == RetryAnswer::no_budget) return counts.retry_denied(), std::nullopt;
  if (request.engine.valid() && !request.tried.push(request.engine)) return std::nullopt;
  const Decision& chosen = choose(request, now);
  const bool go = chosen.outcome == Outcome::chosen && !owed_to_others(chosen.engine, request);
  const bool stay = chosen.outcome == Outcome::chosen || chosen.outcome == Outcome::all_at_limit;
  if (chosen.outcome == Outcome::chosen && !go) loads.give_back(chosen.engine);
  if (!stay) return std::nullopt;
  budget.take();
  end_attempt(request, end, 0, now);
  if (go) return forward(request, chosen, now);
  return wait(request, ticket, now);
}

/// What this request costs its tenant is now `tokens` in all.
void Dispatcher::State::charge(OpenRequest& request, double tokens, Instant now) {
  const double more = tokens - static_cast<double>(request.charged_tokens);
  shares.charge(request.ask.request_class, request.tenant, more, now);
  request.charged_tokens = static_cast<float>(tokens);
}

/// The first byte of an answer came after `output_tokens` were made: 0 for a stream, all for a whole answer.
void Dispatcher::State::measure_delay(const OpenRequest& request, double output_tokens, Instant now) {
  if (!request.engine.valid() || request.status >= 400) return;
  const AnswerDelay delay{request.began, to_seconds(now - request.began),
                          static_cast<double>(request.expected_first_s) +
                              output_tokens * static_cast<double>(request.expected_token_s),
                          request.ahead, view->at(request.engine).curve_known};
  // An engine that was chosen although long prompts were ahead there is not slow.
  if (lateness.late(request.engine, delay.took_s,
                    delay.expected_s + static_cast<double>(request.expected_wait_s)))
    penalties.failure(request.engine, policy::FailureKind::slow, now);
  loads.set_limit(request.engine, limits.answered(request.engine, delay, view->policy->queue.target, now));
}

/// What the answer found in the engine's cache, against what it was believed to hold.
void Dispatcher::State::correct_cache(const OpenRequest& request, double cached_tokens) {
  const auto finding = trust.answered(request.engine, static_cast<double>(request.matched_tokens),
                                      cached_tokens, static_cast<double>(request.ask.block_tokens));
  if (finding == CacheTrust::Finding::agrees) return;
  if (finding == CacheTrust::Finding::lost) cache.forget(request.engine);
  limit_depth(request.engine);
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

  if (usage.cached_tokens && request.engine.valid())
    correct_cache(request, static_cast<double>(*usage.cached_tokens));

  schema::DemandRow& demand = counts.demand(request.ask.request_class);
  ++demand.finished;
  demand.output_tokens += usage.output_tokens;
  demand.cached_tokens += usage.cached_tokens.value_or(0);
}

Verdict Dispatcher::State::failed(OpenRequest& request, Ticket ticket, AttemptEnd end, Instant now) {
  if (const auto kind = failure_of(end, 0); kind && request.engine.valid())
    penalties.failure(request.engine, *kind, now);
  if (auto next = retry(request, ticket, end, now)) return *next;
  end_attempt(request, end, 0, now);
  if (request.deadline <= now) return refuse(request, ticket, RefuseReason::deadline_passed, 504, now);
  const std::uint16_t status = failure_of(end, 0) == policy::FailureKind::connect ? 503
                               : end == AttemptEnd::first_byte_timeout            ? 504
                                                                                  : 502;
  return refuse(request, ticket, RefuseReason::retries_exhausted, status, now);
}

std::optional<Verdict> Dispatcher::State::head(OpenRequest& request, Ticket ticket, std::uint16_t status,
                                               Duration retry_after, Instant now) {
  request.status = status;
  const AttemptEnd end = end_of_status(status);
  if (request.engine.valid()) {
    if (const auto kind = failure_of(end, status)) penalties.failure(request.engine, *kind, now);
    if (end == AttemptEnd::overloaded) penalties.retry_after(request.engine, retry_after, now);
  }
  if (status >= 400)
    if (auto next = retry(request, ticket, end, now)) return next;
  request.phase = Phase::answering;
  return std::nullopt;
}

void Dispatcher::State::first_byte(OpenRequest& request, Instant now) {
  request.first_byte = now;
  if (request.stream) measure_delay(request, 0, now);
  if (view->policy->retry.hedge_tokens > 0 && request.attempts == 1 && request.ask.request_class.valid())
    first_byte_tail(request).add(to_seconds(now - request.began), view->policy->retry.hedge_quantile);
  loads.prefilled(request.hold, now);
  if (!may_continue(request)) request.blocks = PromptBlocks{};  // only another attempt would have needed them
}

void Dispatcher::State::finished(OpenRequest& request, Ticket ticket, AttemptEnd end, const Usage& usage,
                                 Instant now) {
  // What the head said was judged when it came; here only what happened afterwards is new evidence.
  if (const auto kind = failure_of(end, 0); kind && request.engine.valid())
    penalties.failure(request.engine, *kind, now);
  const AttemptEnd outcome = end == AttemptEnd::succeeded ? end_of_status(request.status) : end;
  // Of a continued answer the others made their parts.
  const std::uint64_t before = std::min(usage.output_tokens, request.continued_tokens);
  end_attempt(request, outcome, usage.output_tokens - before, now);
  if (outcome == AttemptEnd::succeeded && request.ask.request_class.valid()) {
    learn(request, usage);
    const double missing = std::max(0.0f, request.ask.prompt_tokens - request.matched_tokens);
    charge(request, missing + static_cast<double>(usage.output_tokens), now);
    if (!request.stream) measure_delay(request, static_cast<double>(usage.output_tokens), now);
  }
  note(request, [&](RecordCore& core) {
    core.status = request.status;
    core.output_tokens = static_cast<float>(usage.output_tokens);
  });
  close(request, ticket, now);
}

void Dispatcher::State::client_left(OpenRequest& request, Ticket ticket, Instant now) {
  if (request.rival) hedge_over(request, request.rival->number, AttemptEnd::client_left, 0, now);
  if (request.phase == Phase::waiting)
    room.remove(ticket);
  else
    end_attempt(request, AttemptEnd::client_left, 0, now);
  note(request, [](RecordCore& core) { core.status = 499; });  // as proxies write it
  close(request, ticket, now);
}

}  // namespace signalbox::routing
