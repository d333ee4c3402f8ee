#include "actors/cluster_router/gateway/gateways.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "messages/base/rng.hpp"

namespace signalbox::gateway {

namespace {

constexpr std::uint32_t most_loops_by_cores = 16;

}  // namespace

std::uint32_t loops_for(std::uint32_t cores) { return std::clamp(cores / 2, 1u, most_loops_by_cores); }

Gateways::Gateways(GatewayThreadOptions options, std::uint32_t loops)
    : shared_(std::make_shared<routing::SharedState>(loops)) {
  for (std::uint32_t loop = 0; loop < loops; ++loop) {
    woken_.push_back(std::make_unique<std::atomic<bool>>(false));
    loops_.push_back(std::make_unique<GatewayThread>(options_of(options, loop, loops)));
    if (loops > 1) loops_.back()->join(servers_);
  }
}

Gateways::~Gateways() {
  // None may give another a connection or wake it once the first of them is gone.
  for (const auto& loop : loops_) loop->stop();
}

GatewayThreadOptions Gateways::options_of(const GatewayThreadOptions& whole, std::uint32_t loop,
                                          std::uint32_t loops) {
  GatewayThreadOptions out = whole;
  out.accepts = loop == 0;
  routing::DispatcherOptions& dispatcher = out.gateway.dispatcher;
  dispatcher.loop = loop;
  dispatcher.loops = loops;
  dispatcher.shared = shared_;
  if (loops == 1) return out;
  dispatcher.seed = mix64(dispatcher.seed + loop);
  dispatcher.records = std::max<std::size_t>(1, dispatcher.records / loops);
  dispatcher.published_per_s /= loops;
  out.gateway.continuation_bytes /= loops;
  out.gateway.traces.per_s /= loops;
  out.gateway.wake_loops = [this](std::uint64_t which) { wake(which); };
  if (loop > 0) out.gateway.on_open = nullptr;
  return out;
}

/// Tells these loops that a place became free. One that is told already will see it.
void Gateways::wake(std::uint64_t loops) {
  for (; loops != 0; loops &= loops - 1) {
    const auto loop = static_cast<std::size_t>(std::countr_zero(loops));
    std::atomic<bool>& woken = *woken_[loop];
    if (woken.exchange(true)) continue;
    loops_[loop]->post([&woken](Gateway& gateway) {
      woken = false;
      gateway.pump_soon();
    });
  }
}

Status Gateways::start() {
  // The first one last: it accepts, and the others must run by then.
  for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
    if (auto started = (*loop)->start(); !started) return started;
  return {};
}

void Gateways::use_tls(const std::shared_ptr<const net::TlsServer>& tls) {
  for (const auto& loop : loops_) loop->use_tls(tls);
}

void Gateways::use_api_keys(const std::shared_ptr<const ApiKeyTable>& keys) {
  for (const auto& loop : loops_) loop->use_api_keys(keys);
}

void Gateways::publish(const Routes& routes) {
  // The first one last: it opens the port.
  for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) (*loop)->publish(routes);
}

std::optional<routing::Batch> Gateways::take_batch() {
  for (const auto& loop : loops_)
    if (auto batch = loop->take_batch()) return batch;
  return std::nullopt;
}

std::uint64_t Gateways::late_batches() const {
  std::uint64_t sum = 0;
  for (const auto& loop : loops_) sum += loop->late_batches();
  return sum;
}

std::optional<tracing::EndedTrace> Gateways::take_trace() {
  for (const auto& loop : loops_)
    if (auto trace = loop->take_trace()) return trace;
  return std::nullopt;
}

std::uint64_t Gateways::dropped_traces() const {
  std::uint64_t sum = 0;
  for (const auto& loop : loops_) sum += loop->dropped_traces();
  return sum;
}

Instant Gateways::last_turn() const {
  Instant earliest = end_of_time;
  for (const auto& loop : loops_) earliest = std::min(earliest, loop->last_turn());
  return earliest;
}

std::vector<routing::PlainQueue<routing::FiledRecord>*> Gateways::filed() const {
  std::vector<routing::PlainQueue<routing::FiledRecord>*> out;
  for (const auto& loop : loops_)
    if (auto* queue = loop->filed()) out.push_back(queue);
  return out;
}

void Gateways::drain(Duration grace, std::function<void()> done) {
  auto left = std::make_shared<std::atomic<std::size_t>>(loops_.size());
  auto one_done = [left, done = std::move(done)] {
    if (left->fetch_sub(1) == 1) done();
  };
  // Only who accepts can tell whether a successor takes the new connections; until then the others serve as it does.
  loops_.front()->drain(grace, one_done, [this, grace, one_done](bool handed_over) {
    for (std::size_t loop = 1; loop < loops_.size(); ++loop)
      loops_[loop]->drain_with_first(grace, handed_over, one_done);
  });
}

}  // namespace signalbox::gateway
