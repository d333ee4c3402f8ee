// A dispatcher and the attempts of a request: what they take, what came of them, whether another one follows.
#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::AttemptEnd;
using schema::RefuseReason;
using Phase = OpenRequest::Phase;

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
  loads.prefilled(request.hold, now);
  request.blocks = PromptBlocks{};  // only a retry would have needed them
}

void Dispatcher::State::finished(OpenRequest& request, Ticket ticket, AttemptEnd end, const Usage& usage,
                                 Instant now) {
  // What the head said was judged when it came; here only what happened afterwards is new evidence.
  if (const auto kind = failure_of(end, 0); kind && request.engine.valid())
    penalties.failure(request.engine, *kind, now);
  const AttemptEnd outcome = end == AttemptEnd::succeeded ? end_of_status(request.status) : end;
  end_attempt(request, outcome, usage.output_tokens, now);
  if (outcome == AttemptEnd::succeeded && request.ask.request_class.valid()) learn(request, usage);
  if (RecordCore* core = record_of(request)) {
    core->status = request.status;
    core->output_tokens = static_cast<float>(usage.output_tokens);
  }
  close(request, ticket, now);
}

void Dispatcher::State::client_left(OpenRequest& request, Ticket ticket, Instant now) {
  if (request.phase == Phase::waiting)
    room.remove(ticket);
  else
    end_attempt(request, AttemptEnd::client_left, 0, now);
  if (RecordCore* core = record_of(request)) core->status = 499;  // as proxies write it
  close(request, ticket, now);
}

}  // namespace signalbox::routing
