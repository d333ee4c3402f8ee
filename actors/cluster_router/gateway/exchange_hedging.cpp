// An exchange and its second attempt, where its policy hedges.
#include <utility>

#include "actors/cluster_router/gateway/exchange.hpp"
#include "actors/cluster_router/gateway/gateway.hpp"
#include "actors/cluster_router/routing/retry.hpp"

namespace signalbox::gateway {

using schema::AttemptEnd;

void Exchange::on_hedge_due() {
  if (phase_ != Phase::calling && phase_ != Phase::answered) return;
  const auto to = gateway_.dispatcher_.hedge(ticket_, gateway_.loop_.now());
  if (!to) return;
  ++gateway_.counters_.attempts;
  ++gateway_.counters_.hedges;
  attempts_ = to->attempt;
  auto engine = gateway_.engines_.at(to->engine);
  if (engine == nullptr || engine->upstream == nullptr) {
    gateway_.dispatcher_.hedge_over(ticket_, to->attempt, AttemptEnd::connect_error, 0, gateway_.loop_.now());
    return gateway_.place_freed();
  }
  auto call = start_call(*engine, *to, *hedge_);
  hedge_->start(std::move(engine), *to, std::move(call));
}

net::CallObserver& Exchange::on_hedge_answering() {
  ++gateway_.counters_.hedges_won;
  promote_hedge(AttemptEnd::superseded, 0);
  return *this;
}

void Exchange::on_hedge_over(AttemptEnd end, std::uint16_t status) {
  gateway_.dispatcher_.hedge_over(ticket_, hedge_->to().attempt, end, status, gateway_.loop_.now());
  gateway_.loop_.later([keep = std::move(hedge_)] {});
  gateway_.place_freed();
}

/// The first attempt was answered with an error. False when the second one goes on in its place.
bool Exchange::settle_hedge(std::uint16_t status) {
  const AttemptEnd end = routing::end_of_status(status);
  const bool first_goes_on = !hedge_ || !hedge_->open() || end == AttemptEnd::client_error;
  first_goes_on ? lose_hedge() : promote_hedge(end, status);
  return first_goes_on;
}

/// The first attempt is the client's answer.
void Exchange::lose_hedge() {
  if (!hedge_) return;
  if (hedge_->open())
    gateway_.dispatcher_.hedge_over(ticket_, hedge_->to().attempt, AttemptEnd::superseded, 0,
                                    gateway_.loop_.now());
  hedge_.reset();
  gateway_.place_freed();
}

/// The second attempt goes on as the request's only one; the first one ended so.
void Exchange::promote_hedge(AttemptEnd end, std::uint16_t status) {
  gateway_.dispatcher_.hedge_over(ticket_, attempt_, end, status, gateway_.loop_.now());
  // What reports this may still be on the stack.
  gateway_.loop_.later([engine = std::move(engine_), hedge = hedge_] {});
  attempt_ = hedge_->to().attempt;
  engine_index_ = hedge_->to().engine;
  Hedge::Taken taken = hedge_->take();
  hedge_.reset();
  engine_ = std::move(taken.engine);
  call_ = std::move(taken.call);
  call_->observe(*this);
  phase_ = taken.answer ? Phase::answered : Phase::calling;
  answer_ = taken.answer ? *std::move(taken.answer) : AnswerStart{};
  gateway_.place_freed();
}

}  // namespace signalbox::gateway
