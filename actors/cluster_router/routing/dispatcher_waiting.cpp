// A dispatcher and those who wait: who goes next, and who has waited long enough.
#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::RefuseReason;
using Phase = OpenRequest::Phase;

namespace {

/// Enough to be woken and to take a place; nothing beside the time of a request.
constexpr Duration time_for_other_loops = 1ms;

}  // namespace

Verdict Dispatcher::State::wait(OpenRequest& request, Ticket ticket, Instant now) {
  const policy::Queue& queue = view->policy->queue;
  const bool retrying = request.attempts > 0;
  if (!retrying && (queue.depth == 0 || queue.max_wait <= Duration::zero() || outranked(request)))
    return refuse(request, ticket, RefuseReason::shed_by_limit, 429, now);
  request.phase = Phase::waiting;
  const Waiting place{ticket,
                      request.ask.request_class,
                      request.criticality,
                      request.tenant,
                      retrying || request.ask.pinned.valid(),
                      std::min(now + queue.max_wait, request.deadline)};
  const auto given_up = room.add(place, queue_depth());
  if (given_up && given_up->ticket == ticket)
    return refuse(request, ticket, retrying ? RefuseReason::retries_exhausted : RefuseReason::queue_full,
                  retrying ? 503 : 429, now);
  if (given_up) evicted.push_back(given_up->ticket);
  say_whether_any_wait();
  return Wait{place.until};
}

/// This loop's share of the policy's depth: over all loops exactly that.
std::size_t Dispatcher::State::queue_depth() const {
  const std::size_t whole = view->policy->queue.depth;
  return whole / options.loops + (options.loop < whole % options.loops ? 1 : 0);
}

void Dispatcher::State::say_whether_any_wait() {
  if (options.loops == 1) return;
  const bool waits = room.size() > 0;
  if (waits) shared->set_in_flight(options.loop, static_cast<std::int64_t>(open - room.size()));
  if (waits != said_waiting) shared->set_waiting(options.loop, said_waiting = waits);
}

/// Requests wait at another loop that has less in flight than this one: it may take what is free first. The loop that frees a place
/// knows of it before the others, and would give each to its own for as long as it has some. Only for a moment: who waits there
/// may wait for another engine.
bool Dispatcher::State::leaves_to_other_loops(Instant now) {
  if (options.loops == 1 || room.size() == 0 ||
      static_cast<std::int64_t>(open - room.size()) <= shared->least_of_those_waiting(options.loop)) {
    leaves_until = never_yet;
    return false;
  }
  if (leaves_until == never_yet) leaves_until = now + time_for_other_loops;
  return now < leaves_until;
}

/// Another request that goes before it waits for a place there.
bool Dispatcher::State::owed_to_others(EngineIndex engine, const OpenRequest& request) const {
  const bool owed = floors.owes(request.ask.request_class);
  return std::ranges::any_of(room.flows(), [&](const WaitingRoom::Flow& w) {
    if (w.alone || !view->at(w.request_class).eligible.contains(engine)) return false;
    const bool other_owed = floors.owes(w.request_class);
    return owed == other_owed ? w.criticality >= request.criticality : other_owed;
  });
}

/// It would be the first to be refused: something that matters more waits for the same engines.
bool Dispatcher::State::outranked(const OpenRequest& request) const {
  if (request.criticality != Criticality::sheddable || floors.owes(request.ask.request_class)) return false;
  const EngineSet& mine = view->at(request.ask.request_class).eligible;
  return std::ranges::any_of(room.flows(), [&](const WaitingRoom::Flow& w) {
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
  if (leaves_to_other_loops(now)) return std::nullopt;
  auto ready = first_that_may_go(now);
  if (!ready) leaves_until = never_yet;  // the next place is for them first again
  return ready;
}

std::optional<Ready> Dispatcher::State::first_that_may_go(Instant now) {
  FixedVector<ClassIndex, 32> blocked;  // more classes than this wait: the rest is asked one by one
  for (const Waiting& w : room.next(shares, floors)) {
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

}  // namespace signalbox::routing
