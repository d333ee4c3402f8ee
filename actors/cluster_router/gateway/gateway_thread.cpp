#include "actors/cluster_router/gateway/gateway_thread.hpp"

#include <utility>

namespace signalbox::gateway {

GatewayThread::GatewayThread(GatewayThreadOptions options)
    : options_(std::move(options)),
      gateway_(loop_, options_.gateway),
      batches_(options_.batches_kept),
      traces_(options_.gateway.traces.on ? options_.traces_kept : 1),
      last_turn_(loop_.now().time_since_epoch().count()),
      batch_timer_(loop_, [this] { hand_out(); }),
      patience_(loop_, [this] { gateway_.open(); }) {}

GatewayThread::~GatewayThread() { stop(); }

void GatewayThread::stop() {
  if (!thread_.joinable()) return;
  loop_.stop();
  thread_.join();
}

Status GatewayThread::start() {
  if (options_.accepts) {
    if (auto bound = gateway_.bind(options_.listen, options_.share_port); !bound) return bound;
    // A port of one's own is taken only by listening; on a shared one another may serve until there are routes here.
    if (!options_.share_port)
      if (auto opened = gateway_.open(); !opened) return opened;
    patience_.arm_in(options_.patience);
  }
  batch_timer_.arm_in(options_.batch_period);
  thread_ = std::thread([this] { loop_.run(); });
  return {};
}

void GatewayThread::use_tls(std::shared_ptr<const net::TlsServer> tls) {
  if (!thread_.joinable()) return gateway_.use_tls(std::move(tls));
  loop_.post([this, tls = std::move(tls)] { gateway_.use_tls(tls); });
}

void GatewayThread::use_api_keys(std::shared_ptr<const ApiKeyTable> keys) {
  if (!thread_.joinable()) return gateway_.use_api_keys(std::move(keys));
  loop_.post([this, keys = std::move(keys)] { gateway_.use_api_keys(keys); });
}

void GatewayThread::publish(Routes routes) {
  routes_.publish(std::move(routes));
  loop_.post([this] {
    if (auto newest = routes_.fetch()) gateway_.adopt(std::move(*newest));
  });
}

void GatewayThread::drain(Duration grace, std::function<void()> done, std::function<void(bool)> begun) {
  loop_.post([this, grace, done = last_word(std::move(done)), begun = std::move(begun)]() mutable {
    const bool handed_over = gateway_.drain(grace, std::move(done));
    if (begun) begun(handed_over);
  });
}

void GatewayThread::drain_with_first(Duration grace, bool handed_over, std::function<void()> done) {
  loop_.post([this, grace, handed_over, done = last_word(std::move(done))]() mutable {
    gateway_.drain(grace, std::move(done), handed_over);
  });
}

std::function<void()> GatewayThread::last_word(std::function<void()> done) {
  return [this, done = std::move(done)] {
    hand_out();
    done();
  };
}

void GatewayThread::hand_out() {
  last_turn_.store(loop_.now().time_since_epoch().count(), std::memory_order_relaxed);
  // While the last batch finds no place the dispatcher goes on counting: nothing is lost, the next one covers more.
  if (!unsent_) {
    unsent_ = gateway_.dispatcher().drain(loop_.now());
    unsent_->problems = gateway_.take_problems();
  }
  if (batches_.push(std::move(*unsent_)))
    unsent_.reset();
  else
    late_.fetch_add(1, std::memory_order_relaxed);
  for (tracing::EndedTrace& trace : gateway_.take_traces())
    if (!traces_.push(std::move(trace))) dropped_traces_.fetch_add(1, std::memory_order_relaxed);
  dropped_traces_.fetch_add(gateway_.take_forgotten_traces(), std::memory_order_relaxed);
  batch_timer_.arm_in(options_.batch_period);
}

}  // namespace signalbox::gateway
