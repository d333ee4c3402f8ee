#include "actors/cluster_router/net/client.hpp"

#include <algorithm>
#include <utility>

#include "actors/cluster_router/net/upstream_connection.hpp"

namespace signalbox::net {

std::string_view to_string(CallFault fault) {
  switch (fault) {
    case CallFault::connect_failed: return "connect_failed";
    case CallFault::connect_timeout: return "connect_timeout";
    case CallFault::handshake_failed: return "handshake_failed";
    case CallFault::untrusted: return "untrusted";
    case CallFault::reset_before_answer: return "reset_before_answer";
    case CallFault::bad_answer: return "bad_answer";
    case CallFault::first_byte_timeout: return "first_byte_timeout";
    case CallFault::gap_timeout: return "gap_timeout";
    case CallFault::total_timeout: return "total_timeout";
    case CallFault::truncated: return "truncated";
  }
  return "unknown";
}

std::string_view describe(CallFault fault) {
  switch (fault) {
    case CallFault::connect_failed: return "the engine refused the connection";
    case CallFault::connect_timeout: return "the engine did not accept the connection in time";
    case CallFault::handshake_failed: return "no TLS session with the engine could be made";
    case CallFault::untrusted: return "the engine's certificate is not the one that it must have";
    case CallFault::reset_before_answer: return "the engine closed the connection before it answered";
    case CallFault::bad_answer: return "the engine's answer is not valid HTTP/1.1";
    case CallFault::first_byte_timeout: return "the engine sent nothing in time";
    case CallFault::gap_timeout: return "the engine stopped sending in the middle of its answer";
    case CallFault::total_timeout: return "the engine's answer took longer than the limit";
    case CallFault::truncated: return "the engine closed the connection in the middle of its answer";
  }
  return "unknown";
}

Call::Call(Upstream& upstream, std::string head, std::string_view body, bool bodiless,
           const CallLimits& limits, CallObserver& observer)
    : upstream_(upstream),
      head_(std::move(head)),
      body_(body),
      limits_(limits),
      observer_(&observer),
      timer_(upstream.loop_, [this] { on_deadline(); }),
      total_deadline_(upstream.loop_.now() + limits.total),
      bodiless_(bodiless) {}

Call::~Call() { UpstreamConnection::end(std::move(connection_)); }

void Call::use(std::unique_ptr<UpstreamConnection> connection) {
  connection_ = std::move(connection);
  connection_->carry(*this, false);
}

void Call::connect() {
  auto fd = start_connect(upstream_.address_);
  if (!fd) return wait(CallFault::connect_failed, Duration::zero());
  const auto& tls = upstream_.settings_.tls;
  auto stream = tls ? tls->connect(std::move(*fd)) : plain_stream(std::move(*fd));
  connection_ = std::make_unique<UpstreamConnection>(upstream_, std::move(stream));
  connection_->carry(*this, true);
}

void Call::restart() {
  restarted_ = true;
  UpstreamConnection::end(std::move(connection_));
  connect();
}

void Call::wait(CallFault or_else, Duration longest) {
  const Instant deadline = upstream_.loop_.now() + longest;
  due_ = deadline <= total_deadline_ ? or_else : CallFault::total_timeout;
  timer_.arm(std::min(deadline, total_deadline_));
}

void Call::on_deadline() {
  if (due_ == CallFault::handshake_failed) upstream_.problem_ = "the TLS handshake was not done in time";
  fail(due_);
}

void Call::fail(CallFault fault) {
  timer_.disarm();
  UpstreamConnection::end(std::move(connection_));
  observer_->on_fault(fault);
}

void Call::pause() {
  if (!connection_) return;
  connection_->set_paused(true);
  // A client that reads slowly is not the engine's fault.
  due_ = CallFault::total_timeout;
  timer_.arm(total_deadline_);
}

void Call::resume() {
  if (!connection_) return;
  wait(CallFault::gap_timeout, limits_.gap);
  connection_->set_paused(false);
}

bool Call::sent() const { return !connection_ || connection_->sent(); }

Upstream::Upstream(Loop& loop, Address address, PoolSettings settings)
    : loop_(loop), address_(address), settings_(std::move(settings)), sweep_(loop, [this] { sweep(); }) {}

Upstream::~Upstream() { close_idle(); }

std::unique_ptr<Call> Upstream::start(std::string head, std::string_view body, const CallLimits& limits,
                                      CallObserver& observer, bool bodiless) {
  std::unique_ptr<Call> call(new Call(*this, std::move(head), body, bodiless, limits, observer));
  if (idle_.empty()) {
    call->connect();
  } else {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    call->use(std::move(connection));
  }
  return call;
}

void Upstream::keep(std::unique_ptr<UpstreamConnection> connection) {
  if (idle_.size() >= settings_.max_idle) return UpstreamConnection::end(std::move(connection));
  connection->phase_ = UpstreamConnection::Phase::idle;
  connection->idle_since = loop_.now();
  idle_.push_back(std::move(connection));
  if (!sweep_.armed()) sweep_.arm_in(settings_.idle_timeout);
}

void Upstream::drop_idle(UpstreamConnection& connection) {
  const auto found =
      std::find_if(idle_.begin(), idle_.end(), [&](const auto& idle) { return idle.get() == &connection; });
  auto ended = std::move(*found);
  idle_.erase(found);
  UpstreamConnection::end(std::move(ended));
}

void Upstream::sweep() {
  while (!idle_.empty() && idle_.front()->idle_since + settings_.idle_timeout <= loop_.now())
    drop_idle(*idle_.front());
  if (!idle_.empty()) sweep_.arm(idle_.front()->idle_since + settings_.idle_timeout);
}

void Upstream::close_idle() {
  while (!idle_.empty()) drop_idle(*idle_.back());
}

}  // namespace signalbox::net
