// A dispatcher and the second attempt of a request whose first one is late (Dean and Barroso, "The tail at scale", 2013). It
// takes from the budget of retries, so that a fleet that is late everywhere is not asked for twice the work.
#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::AttemptEnd;

namespace {

void swap_with_rival(OpenRequest& request) {
  RivalAttempt& rival = *request.rival;
  std::swap(request.engine, rival.engine);
  std::swap(request.number, rival.number);
  Hold held = std::move(request.hold);
  request.hold = std::move(rival.hold);
  rival.hold = std::move(held);
  std::swap(request.matched_tokens, rival.matched_tokens);
  std::swap(request.expected_first_s, rival.expected_first_s);
  std::swap(request.expected_wait_s, rival.expected_wait_s);
  std::swap(request.expected_token_s, rival.expected_token_s);
  std::swap(request.ahead, rival.ahead);
  std::swap(request.began, rival.began);
}

bool may_hedge(const OpenRequest& request, const policy::Retry& rules) {
  return request.attempts == 1 && rules.attempts > 1 && !request.stateful && !request.ask.pinned.valid() &&
         request.ask.request_class.valid() &&
         static_cast<double>(request.ask.prompt_tokens + request.ask.output_tokens) <= rules.hedge_tokens;
}

}  // namespace

Duration Dispatcher::State::hedge_delay(const OpenRequest& request) const {
  const policy::Retry& rules = view->policy->retry;
  if (rules.hedge_tokens == 0 || !may_hedge(request, rules)) return {};
  const auto tail = means[request.ask.request_class.at()].first_byte[request.stream ? 1 : 0].value_s();
  return tail ? std::max(rules.hedge_least, from_seconds(*tail)) : Duration::zero();
}

std::optional<Forward> Dispatcher::State::hedge(OpenRequest& request, Instant now) {
  const policy::Retry& rules = view->policy->retry;
  if (request.rival || !may_hedge(request, rules) || !request.engine.valid()) return std::nullopt;
  first_byte_tail(request).above(rules.hedge_quantile);
  const bool too_late = to_seconds(now - request.arrived) >
                        rules.deadline_share * to_seconds(request.deadline - request.arrived);
  if (too_late || !budget.available()) return std::nullopt;
  const Tried before = request.tried;
  if (!request.tried.push(request.engine)) return std::nullopt;
  const Decision& chosen = choose(request, now);
  if (chosen.outcome != Outcome::chosen || owed_to_others(chosen.engine, request)) {
    if (chosen.outcome == Outcome::chosen) loads.give_back(chosen.engine);
    request.tried = before;
    return std::nullopt;
  }
  budget.take();
  request.rival = std::make_unique<RivalAttempt>();
  swap_with_rival(request);
  return forward(request, chosen, now);
}

void Dispatcher::State::hedge_over(OpenRequest& request, std::uint32_t attempt, AttemptEnd end,
                                   std::uint16_t status, Instant now) {
  if (attempt != request.number) swap_with_rival(request);
  if (const auto kind = failure_of(end, status); kind && request.engine.valid())
    penalties.failure(request.engine, *kind, now);
  request.status = status;
  end_attempt(request, end, 0, now);
  if (request.engine.valid() && !request.tried.contains(request.engine)) request.tried.push(request.engine);
  swap_with_rival(request);
  request.rival.reset();
  request.status = 0;
  if (request.engine.valid()) sessions.set(request.session_hash, request.engine);
}

}  // namespace signalbox::routing
