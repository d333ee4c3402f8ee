// The gateway of a router: one event loop, or several that share one port and what SharedState holds. The first loop accepts and gives
// each new connection to the loop that has the fewest; the rest of a connection's life is on that loop alone.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "actors/cluster_router/gateway/gateway_thread.hpp"
#include "actors/cluster_router/net/server_group.hpp"

namespace signalbox::gateway {

/// As many as the machine's cores ask for: one on two cores, then one for each two, for engines and actors want theirs too.
std::uint32_t loops_for(std::uint32_t cores);

/// Calls as those of GatewayThread, for all loops.
class Gateways {
 public:
  /// `options` as for one loop that does everything; what bounds memory or rates is divided among `loops` (1 to
  /// SharedState::most_loops).
  Gateways(GatewayThreadOptions options, std::uint32_t loops);
  ~Gateways();
  Gateways(const Gateways&) = delete;
  Gateways& operator=(const Gateways&) = delete;

  Status start();
  std::uint16_t port() const { return loops_.front()->port(); }
  std::uint32_t loops() const { return static_cast<std::uint32_t>(loops_.size()); }
  void use_tls(const std::shared_ptr<const net::TlsServer>& tls);
  void use_api_keys(const std::shared_ptr<const ApiKeyTable>& keys);

  void publish(const Routes& routes);
  /// Of any loop that has one.
  std::optional<routing::Batch> take_batch();
  std::uint64_t late_batches() const;
  std::optional<tracing::EndedTrace> take_trace();
  std::uint64_t dropped_traces() const;
  /// Of the loop that has not had one for longest.
  Instant last_turn() const;
  /// Each loop's decisions for the ring file, for one thread to take; none unless they are wanted.
  std::vector<routing::PlainQueue<routing::FiledRecord>*> filed() const;
  /// `done` is called once, on some loop's thread, when all have finished.
  void drain(Duration grace, std::function<void()> done);

  /// Asks one loop; see GatewayThread::ask().
  template <class Question>
  auto ask(std::uint32_t loop, Question question, Duration limit) {
    return loops_[loop]->ask(std::move(question), limit);
  }
  /// Asks all of them; nothing when any was too late.
  template <class Question>
  auto ask_all(Question question, Duration limit)
      -> std::optional<std::vector<std::invoke_result_t<Question, Gateway&>>> {
    std::vector<std::invoke_result_t<Question, Gateway&>> out;
    for (const auto& loop : loops_) {
      auto answer = loop->ask(question, limit);
      if (!answer) return std::nullopt;
      out.push_back(*std::move(answer));
    }
    return out;
  }

 private:
  GatewayThreadOptions options_of(const GatewayThreadOptions& whole, std::uint32_t loop, std::uint32_t loops);
  void wake(std::uint64_t loops);

  std::shared_ptr<routing::SharedState> shared_;
  net::ServerGroup servers_;
  std::vector<std::unique_ptr<std::atomic<bool>>> woken_;  ///< a loop that is told and has not looked yet
  std::vector<std::unique_ptr<GatewayThread>> loops_;
};

}  // namespace signalbox::gateway
