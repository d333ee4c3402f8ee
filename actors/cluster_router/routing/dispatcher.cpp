#include "actors/cluster_router/routing/dispatcher.hpp"

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

using schema::AttemptEnd;
using Phase = OpenRequest::Phase;

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
    return Refuse{schema::RefuseReason::retries_exhausted, 503, Duration::zero()};
  return state_->failed(*request, ticket, end, now);
}

std::optional<Forward> Dispatcher::hedge(Ticket ticket, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::sent) return std::nullopt;
  return state_->hedge(*request, now);
}

void Dispatcher::hedge_over(Ticket ticket, std::uint32_t attempt, AttemptEnd end, std::uint16_t status,
                            Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request != nullptr && request->rival) state_->hedge_over(*request, attempt, end, status, now);
}

std::optional<Verdict> Dispatcher::head(Ticket ticket, std::uint16_t status, Duration retry_after,
                                        Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::sent) return std::nullopt;
  return state_->head(*request, ticket, status, retry_after, now);
}

void Dispatcher::first_byte(Ticket ticket, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::answering || request->first_byte != never_yet) return;
  state_->first_byte(*request, now);
}

void Dispatcher::finished(Ticket ticket, AttemptEnd end, const Usage& usage, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || (request->phase != Phase::sent && request->phase != Phase::answering)) return;
  state_->finished(*request, ticket, end, usage, now);
}

bool Dispatcher::may_continue(Ticket ticket) const {
  const OpenRequest* request = state_->find(ticket);
  return request != nullptr && state_->may_continue(*request);
}

std::optional<Forward> Dispatcher::continue_stream(Ticket ticket, AttemptEnd end, std::uint64_t tokens,
                                                   bool chat, Instant now) {
  OpenRequest* request = state_->find(ticket);
  if (request == nullptr || request->phase != Phase::answering || request->first_byte == never_yet)
    return std::nullopt;
  return state_->continue_stream(*request, end, tokens, chat, now);
}

void Dispatcher::client_left(Ticket ticket, Instant now) {
  if (OpenRequest* request = state_->find(ticket)) state_->client_left(*request, ticket, now);
  state_->say_whether_any_wait();
}

void Dispatcher::drain_and_refuse() { state_->refusing = true; }

std::optional<Ready> Dispatcher::next_ready(Instant now) {
  if (state_->view == nullptr) return std::nullopt;
  auto ready = state_->next_ready(now);
  state_->say_whether_any_wait();
  return ready;
}
std::uint64_t Dispatcher::waiting_elsewhere() const {
  return state_->shared->waiting_elsewhere(state_->options.loop);
}
Instant Dispatcher::next_wake() const {
  if (!state_->evicted.empty()) return never_yet;
  const Instant leaves = state_->leaves_until;
  return leaves == never_yet ? state_->room.earliest() : std::min(state_->room.earliest(), leaves);
}

Batch Dispatcher::drain(Instant now) { return state_->drain(now); }

PlainQueue<FiledRecord>* Dispatcher::filed() const { return state_->filing.get(); }
std::size_t Dispatcher::open() const { return state_->open; }
std::size_t Dispatcher::waiting() const { return state_->room.size(); }

DecisionId Dispatcher::decision_of(Ticket ticket) const {
  const OpenRequest* request = state_->find(ticket);
  return request == nullptr ? DecisionId{} : DecisionId{state_->life, state_->count_of(request->sequence)};
}

std::optional<schema::DecisionRecord> Dispatcher::record(const DecisionId& id, Instant now) const {
  return state_->explain_past(id, now);
}

std::shared_ptr<const schema::RoutingSnapshot> Dispatcher::plan_of(const DecisionId& id) const {
  const RecordCore* core = state_->kept(id);
  const PlanContext* plan = core == nullptr ? nullptr : state_->context(core->plan);
  return plan == nullptr ? nullptr : plan->snapshot;
}

schema::DecisionRecord Dispatcher::would_decide(const RequestFacts& facts, Instant now) const {
  return state_->explain_next(facts, now);
}

}  // namespace signalbox::routing
