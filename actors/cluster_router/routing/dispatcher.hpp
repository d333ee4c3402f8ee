// The data plane's brain for one event loop: everything between a parsed request and the engine that serves it. It
// touches nothing outside; the gateway tells it what happened and does what it answers.
//
//   begin ──▶ Forward ──▶ head ──▶ first_byte ──▶ finished
//     │          │          └─▶ Forward (an answer that may be retried: drop it, try there)
//     │          └─▶ failed ──▶ Forward | Refuse
//     ├──▶ Wait ──▶ next_ready ──▶ Forward | Refuse
//     └──▶ Refuse                                  client_left: at any time before the end
//
// One dispatcher belongs to one thread. It owns the in-flight counts: nobody else writes them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "actors/cluster_router/routing/batch.hpp"
#include "actors/cluster_router/routing/filed_record.hpp"
#include "actors/cluster_router/routing/handover.hpp"
#include "actors/cluster_router/routing/request.hpp"
#include "actors/cluster_router/routing/shared_state.hpp"
#include "actors/cluster_router/routing/verdict.hpp"
#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::routing {

struct DispatcherOptions {
  ClusterName cluster;
  ProcessName router;
  Incarnation incarnation;
  std::uint32_t loop = 0;                 ///< which of the router's event loops, from 0
  std::uint32_t loops = 1;                ///< how many there are
  std::shared_ptr<SharedState> shared{};  ///< of all of them; may be null for one
  std::uint64_t seed = 1;                 ///< of all draws; give each loop and life its own
  std::uint32_t block_bytes = default_block_bytes;
  std::size_t cache_blocks = 262'144;  ///< bound of the cache knowledge of all engines together
  std::size_t records = 4'096;         ///< decisions that are kept here whole, to be explained afterwards
  bool file_records = false;           ///< hand out each decision for the ring file
  std::size_t filed_waiting =
      4'096;  ///< of these, so many while nobody takes them (a power of two); more are dropped
  double published_per_s = 100;  ///< decisions handed out while somebody listens, at most
  std::size_t sent_rows =
      100'000;  ///< bound of the sent blocks kept between two drains; more are dropped, counted
};

struct Begun {
  Ticket ticket;  ///< closed if the verdict is Refuse
  DecisionId decision;
  Verdict verdict;
};

struct Ready {
  Ticket ticket;
  Verdict verdict;  ///< Forward or Refuse
};

class Dispatcher {
 public:
  explicit Dispatcher(DispatcherOptions options);
  ~Dispatcher();
  Dispatcher(Dispatcher&&) noexcept;
  Dispatcher& operator=(Dispatcher&&) noexcept;

  /// Routes by this view from now on. Ask next_ready() afterwards.
  void adopt(std::shared_ptr<const View> view, Instant now);
  /// The view in force; null before the first.
  const std::shared_ptr<const View>& view() const;

  /// A request arrived. Classifies, admits, decides.
  Begun begin(RequestFacts facts, Instant now);
  /// The connection to the engine stands, if one had to be made.
  void connected(Ticket ticket, Instant now);
  /// The attempt failed before the answer's head: Forward to another engine, Wait for one, or Refuse.
  Verdict failed(Ticket ticket, schema::AttemptEnd end, Instant now);
  /// The first byte is late (Forward::hedge has passed): where to send the request as well, if anywhere. Both attempts are
  /// open then, until hedge_over().
  std::optional<Forward> hedge(Ticket ticket, Instant now);
  /// Of two open attempts, the one of this number is over: it failed, or the other one answered first (superseded). The other
  /// one is the request's only one now, and all other events are its. To be called before any of those.
  void hedge_over(Ticket ticket, std::uint32_t attempt, schema::AttemptEnd end, std::uint16_t status,
                  Instant now);
  /// The head of the answer came. A verdict: drop this answer and do that instead. Nothing: relay it to the client
  /// whatever its status. `retry_after`: as the engine says; zero: it says nothing.
  std::optional<Verdict> head(Ticket ticket, std::uint16_t status, Duration retry_after, Instant now);
  /// The first byte of the answer's body came: its prompt is done, nothing will be retried.
  void first_byte(Ticket ticket, Instant now);
  /// The attempt ended after its head. `end`: succeeded when the body came to its end, whatever the status; else
  /// broken_stream, gap_timeout or total_timeout. Ask next_ready() afterwards.
  void finished(Ticket ticket, schema::AttemptEnd end, const Usage& usage, Instant now);
  /// The policy lets this answer's stream go on at another engine, should its own break.
  bool may_continue(Ticket ticket) const;
  /// Its engine broke after about `tokens` tokens of the answer: where to ask for the rest, if anywhere; then head() and what
  /// follows it are of that attempt. Nothing: the attempt is not over yet, say finished(). `chat`: of a chat completion.
  std::optional<Forward> continue_stream(Ticket ticket, schema::AttemptEnd end, std::uint64_t tokens,
                                         bool chat, Instant now);
  /// The client closed its connection. In any phase, waiting included. Ask next_ready() afterwards.
  void client_left(Ticket ticket, Instant now);
  /// The router is being stopped: new requests are refused, what is here goes on.
  void drain_and_refuse();

  /// A request that waited and may go, or must be refused, now. Call until it answers nothing.
  std::optional<Ready> next_ready(Instant now);
  /// After a place became free: a bit for each other loop that should ask next_ready() soon.
  std::uint64_t waiting_elsewhere() const;
  /// When next_ready() has to be asked at the latest; end_of_time if nothing waits.
  Instant next_wake() const;

  /// All that happened since the last drain; numbered. About each second, and each quarter second for fresh prefixes.
  Batch drain(Instant now);
  /// Decisions for the ring file: each when it ended, and once before if it is open for long. Null unless they are wanted.
  PlainQueue<FiledRecord>* filed() const;
  /// Requests open here, those that wait included.
  std::size_t open() const;
  /// Requests that wait.
  std::size_t waiting() const;
  DecisionId decision_of(Ticket ticket) const;
  /// What was decided and why, with the fate of every engine; nothing when it is no longer kept. Allocates, linear in
  /// the fleet.
  std::optional<schema::DecisionRecord> record(const DecisionId& id, Instant now) const;
  /// The plan that a decision of this life read; null when it or the decision is no longer kept.
  std::shared_ptr<const schema::RoutingSnapshot> plan_of(const DecisionId& id) const;
  /// What begin() would decide for this request, changing nothing.
  schema::DecisionRecord would_decide(const RequestFacts& facts, Instant now) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace signalbox::routing
