// A gateway on a thread of its own, and the two places where it meets its actor: the newest routes in, batches of what happened out.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "actors/cluster_router/gateway/gateway.hpp"
#include "actors/cluster_router/routing/handover.hpp"

namespace signalbox::gateway {

struct GatewayThreadOptions {
  GatewayOptions gateway;
  net::Address listen;
  bool share_port = false;
  bool accepts = true;             ///< takes the port; else connections come from the loop that does
  Duration batch_period = 250ms;   ///< how often what happened is handed out
  Duration patience = 1s;          ///< how long clients are not accepted for want of routes
  std::size_t batches_kept = 64;   ///< while nobody takes them; after that the next one covers more
  std::size_t traces_kept = 1024;  ///< likewise; more are dropped
};

/// publish(), take_batch() and take_trace() by one thread at a time; ask(), drain() and use_...() by any.
class GatewayThread {
 public:
  explicit GatewayThread(GatewayThreadOptions options);
  /// Ends what is still open, at once, and joins.
  ~GatewayThread();
  GatewayThread(const GatewayThread&) = delete;
  GatewayThread& operator=(const GatewayThread&) = delete;

  /// Takes the port and starts the thread. A shared port is accepted on from the first routes on, or after `patience` without
  /// any; another one at once. Errors: io.
  Status start();
  std::uint16_t port() const { return gateway_.port(); }
  /// Shares what any of the group accepts; before start().
  void join(net::ServerGroup& group) { gateway_.join(group); }
  /// Ends the loop after its turn, and joins; nothing is served then.
  void stop();
  /// Speaks TLS with clients that come from now on; before start() or after it. Never waits.
  void use_tls(std::shared_ptr<const net::TlsServer> tls);
  void use_api_keys(std::shared_ptr<const ApiKeyTable> keys);  ///< likewise

  /// Routes by these from the loop's next turn on. Never waits.
  void publish(Routes routes);
  /// What happened since the last batch; nothing when there is none. Never waits.
  std::optional<routing::Batch> take_batch() { return batches_.pop(); }
  /// A trace of a request that is over, if there is one. Never waits.
  std::optional<tracing::EndedTrace> take_trace() { return traces_.pop(); }
  std::uint64_t dropped_traces() const { return dropped_traces_.load(std::memory_order_relaxed); }
  /// How often a batch had to wait because nobody took the earlier ones.
  std::uint64_t late_batches() const { return late_.load(std::memory_order_relaxed); }
  /// Decisions for the ring file, for one thread to take; null unless they are wanted.
  routing::PlainQueue<routing::FiledRecord>* filed() const { return gateway_.dispatcher().filed(); }
  /// The loop's last turn of its own, which it takes each batch_period; any thread may ask.
  Instant last_turn() const { return instant_at(Duration(last_turn_.load(std::memory_order_relaxed))); }
  /// Accepts nothing new and lets what is here finish for `grace`; `done` is called on the loop's thread, and before it `begun`
  /// (may be empty), with whether a successor has the new connections.
  void drain(Duration grace, std::function<void()> done, std::function<void(bool)> begun = {});
  /// The same for one that does not accept, beside the one that does.
  void drain_with_first(Duration grace, bool handed_over, std::function<void()> done);
  /// Runs it on the loop's thread.
  template <class Act>
  void post(Act act) {
    loop_.post([this, act = std::move(act)]() mutable { act(gateway_); });
  }

  /// Runs `question(Gateway&)` on the loop's thread and waits for the answer, at most `limit`; nothing when it came too late.
  template <class Question>
  auto ask(Question question, Duration limit) -> std::optional<std::invoke_result_t<Question, Gateway&>>;

 private:
  void hand_out();
  std::function<void()> last_word(std::function<void()> done);

  GatewayThreadOptions options_;
  net::Loop loop_;
  Gateway gateway_;
  routing::LatestSlot<Routes> routes_;
  routing::SpscQueue<routing::Batch> batches_;
  std::optional<routing::Batch> unsent_;  ///< found the queue full
  std::atomic<std::uint64_t> late_{0};
  routing::SpscQueue<tracing::EndedTrace> traces_;
  std::atomic<std::uint64_t> dropped_traces_{0};
  std::atomic<Duration::rep> last_turn_;
  net::Timer batch_timer_;
  net::Timer patience_;
  std::thread thread_;
};

template <class Question>
auto GatewayThread::ask(Question question, Duration limit)
    -> std::optional<std::invoke_result_t<Question, Gateway&>> {
  using Answer = std::invoke_result_t<Question, Gateway&>;
  auto promise = std::make_shared<std::promise<Answer>>();
  auto answer = promise->get_future();
  loop_.post(
      [this, promise, question = std::move(question)]() mutable { promise->set_value(question(gateway_)); });
  if (answer.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace signalbox::gateway
