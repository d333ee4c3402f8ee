// A dispatcher and a stream whose engine broke after its first byte: where it goes on, where the policy lets it.
#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::AttemptEnd;

namespace {

/// Who goes on with a text: any with a completion, whose prompt is a text; with a chat only those that can be told to.
bool can_go_on(EngineKind kind, bool chat) {
  switch (kind) {
    case EngineKind::sim:
    case EngineKind::vllm:
    case EngineKind::sglang:
    case EngineKind::llamacpp: return true;
    case EngineKind::tgi:
    case EngineKind::trtllm:
    case EngineKind::openai: break;
  }
  return !chat;
}

}  // namespace

bool Dispatcher::State::may_continue(const OpenRequest& request) const {
  return request.stream && !request.stateful && !request.ask.pinned.valid() &&
         request.ask.request_class.valid() && view->policy->at(request.ask.request_class).continue_streams &&
         request.attempts < view->policy->retry.attempts;
}

/// It takes from the budget of retries: an engine that dies with many streams must not send all of them to the others at once.
std::optional<Forward> Dispatcher::State::continue_stream(OpenRequest& request, AttemptEnd end,
                                                          std::uint64_t tokens, bool chat, Instant now) {
  if (!may_continue(request) || !budget.available() || request.deadline <= now) return std::nullopt;
  if (request.engine.valid() && !request.tried.push(request.engine)) return std::nullopt;
  const auto made = static_cast<float>(tokens);
  request.ask.prompt_tokens += made;
  request.ask.output_tokens = std::max(1.0f, request.ask.output_tokens - made);
  const Decision& chosen = choose(request, now);
  if (chosen.outcome != Outcome::chosen || owed_to_others(chosen.engine, request) ||
      !can_go_on(view->table->engines[chosen.engine.at()].kind, chat)) {
    if (chosen.outcome == Outcome::chosen) loads.give_back(chosen.engine);
    return std::nullopt;
  }
  if (const auto kind = failure_of(end, 0); kind && request.engine.valid())
    penalties.failure(request.engine, *kind, now);
  budget.take();
  end_attempt(request, end, tokens - std::min(tokens, request.continued_tokens), now);
  request.continued_tokens = tokens;
  note(request, [](RecordCore& core) { ++core.continued; });
  return forward(request, chosen, now);
}

}  // namespace signalbox::routing
