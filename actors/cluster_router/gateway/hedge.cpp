#include "actors/cluster_router/gateway/hedge.hpp"

#include <utility>

#include "actors/cluster_router/routing/retry.hpp"

namespace signalbox::gateway {

using schema::AttemptEnd;

AttemptEnd before_first_byte(net::CallFault fault) {
  switch (fault) {
    case net::CallFault::connect_failed:
    case net::CallFault::connect_timeout: return AttemptEnd::connect_error;
    case net::CallFault::handshake_failed: return AttemptEnd::tls_failed;
    case net::CallFault::untrusted: return AttemptEnd::untrusted;
    case net::CallFault::first_byte_timeout:
    case net::CallFault::gap_timeout: return AttemptEnd::first_byte_timeout;
    case net::CallFault::total_timeout: return AttemptEnd::total_timeout;
    case net::CallFault::reset_before_answer:
    case net::CallFault::bad_answer:
    case net::CallFault::truncated: break;
  }
  return AttemptEnd::reset_before_head;
}

Hedge::Hedge(net::Loop& loop, Duration after, http::Endpoint endpoint, HedgeObserver& observer)
    : observer_(observer), timer_(loop, [this] { observer_.on_hedge_due(); }), endpoint_(endpoint) {
  timer_.arm_in(after);
}

void Hedge::start(std::shared_ptr<Engine> engine, const routing::Forward& to,
                  std::unique_ptr<net::Call> call) {
  engine_ = std::move(engine);
  to_ = to;
  call_ = std::move(call);
}

Hedge::Taken Hedge::take() { return {std::move(engine_), std::move(call_), std::move(answer_)}; }

void Hedge::on_answer(const http::ResponseHead& head) {
  answer_ = answer_start(head, endpoint_);
  const std::uint16_t status = answer_->status;
  if (status < 400) return;
  call_.reset();  // the first attempt may still do better
  observer_.on_hedge_over(routing::end_of_status(status), status);
}

void Hedge::on_body(std::string_view bytes) { observer_.on_hedge_answering().on_body(bytes); }
void Hedge::on_end() { observer_.on_hedge_answering().on_end(); }
void Hedge::on_fault(net::CallFault fault) {
  call_.reset();
  observer_.on_hedge_over(before_first_byte(fault), 0);
}

}  // namespace signalbox::gateway
