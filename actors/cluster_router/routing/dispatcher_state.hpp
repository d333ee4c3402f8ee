// The inside of a Dispatcher: the requests that are open, and the steps between their events.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "actors/cluster_router/routing/admission.hpp"
#include "actors/cluster_router/routing/cache_trust.hpp"
#include "actors/cluster_router/routing/class_means.hpp"
#include "actors/cluster_router/routing/counts.hpp"
#include "actors/cluster_router/routing/dispatcher.hpp"
#include "actors/cluster_router/routing/engine_limits.hpp"
#include "actors/cluster_router/routing/explain.hpp"
#include "actors/cluster_router/routing/lateness.hpp"
#include "actors/cluster_router/routing/publishing.hpp"
#include "actors/cluster_router/routing/retry.hpp"
#include "actors/cluster_router/routing/sessions.hpp"
#include "actors/cluster_router/routing/tenant_shares.hpp"
#include "actors/cluster_router/routing/waiting_room.hpp"

namespace signalbox::routing {

/// The earlier one of two attempts that are open at the same time.
struct RivalAttempt {
  EngineIndex engine;
  std::uint32_t number = 0;
  Hold hold;
  float matched_tokens = 0, expected_first_s = 0, expected_wait_s = 0, expected_token_s = 0;
  std::int64_t ahead = 0;
  Instant began;
};

/// The record of a request that is open for so long that the ring may give its place to others.
struct LongRecord {
  RecordCore core;
  FiledCosts costs;
};

/// One request between begin() and its end.
struct OpenRequest {
  enum class Phase : std::uint8_t { closed, waiting, sent, answering };
  Phase phase = Phase::closed;
  std::uint32_t generation = 0;
  std::uint64_t sequence = 0;  ///< of its record
  Instant arrived;
  Instant deadline;
  Criticality criticality = Criticality::sheddable;
  bool stateful = false;
  bool stream = false;
  bool pin_unknown = false;  ///< the engine that keeps its state is not in the table
  std::uint64_t session_hash = 0;
  std::uint64_t tenant = 0;  ///< hash of its name
  std::uint64_t prompt_bytes = 0;
  Ask ask;  ///< without its blocks
  PromptBlocks blocks;
  Tried tried;
  Hold hold;
  std::uint32_t attempts = 0;           ///< made so far
  std::unique_ptr<LongRecord> lasting;  ///< null: it is not open for long, or nothing is filed
  std::unique_ptr<RivalAttempt> rival;  ///< null: at most one attempt is open
  // Of the attempt that is open, the later one of two:
  EngineIndex engine;
  std::uint32_t number = 0;  ///< from 1
  std::uint16_t status = 0;
  float matched_tokens = 0;
  float charged_tokens = 0;            ///< to its tenant
  std::uint64_t continued_tokens = 0;  ///< of its answer, made by attempts before the open one
  float expected_first_s = 0;          ///< time to the first token, if nothing waits at the engine
  float expected_wait_s = 0;           ///< for the prompts that were believed to be ahead
  float expected_token_s = 0;          ///< of each output token
  std::int64_t ahead = 0;              ///< in flight from here when it was sent
  Instant began;
  Instant first_byte = never_yet;
};

struct Dispatcher::State {
  explicit State(DispatcherOptions given);
  ~State();

  // Views.
  void adopt(std::shared_ptr<const View> next, Instant now);
  void follow_policy(const View* before);
  void follow_table(const View* before);
  void follow_engines(Instant now);
  void forget_life(EngineIndex engine);
  void follow_cache(EngineIndex engine);
  void keep_context();
  const PlanContext* context(std::uint32_t number) const;
  const PlanContext* context_of_names(std::uint32_t names) const;
  Batch drain(Instant now);

  // A request arrives, and leaves.
  Begun begin(RequestFacts&& facts, Instant now);
  Ticket new_ticket();
  void open_request(OpenRequest& request, RequestFacts&& facts, const policy::Classified& classified,
                    std::uint64_t sequence, Instant now);
  Ask ask_of(const RequestFacts& facts, const policy::Classified& classified) const;
  void note_opened(RecordCore& core, const OpenRequest& request, Instant now);
  Verdict admit(OpenRequest& request, Ticket ticket, const ClassTable& row, Instant now);
  bool all_gone(const ClassTable& row) const;
  const Decision& choose(OpenRequest& request, Instant now);
  const Decision& look(OpenRequest& request, Instant now);
  Refuse refuse_early(RecordCore& core, schema::RefuseReason reason, std::uint16_t status);
  Refuse refuse(OpenRequest& request, Ticket ticket, schema::RefuseReason reason, std::uint16_t status,
                Instant now);
  void close(OpenRequest& request, Ticket ticket, Instant now);

  // Its attempts.
  Forward forward(OpenRequest& request, const Decision& decision, Instant now);
  Verdict failed(OpenRequest& request, Ticket ticket, schema::AttemptEnd end, Instant now);
  std::optional<Verdict> head(OpenRequest& request, Ticket ticket, std::uint16_t status, Duration retry_after,
                              Instant now);
  void first_byte(OpenRequest& request, Instant now);
  std::optional<Forward> hedge(OpenRequest& request, Instant now);
  void hedge_over(OpenRequest& request, std::uint32_t attempt, schema::AttemptEnd end, std::uint16_t status,
                  Instant now);
  Duration hedge_delay(const OpenRequest& request) const;
  TailTime& first_byte_tail(const OpenRequest& request) {
    return means[request.ask.request_class.at()].first_byte[request.stream ? 1 : 0];
  }
  void finished(OpenRequest& request, Ticket ticket, schema::AttemptEnd end, const Usage& usage, Instant now);
  void client_left(OpenRequest& request, Ticket ticket, Instant now);
  bool may_continue(const OpenRequest& request) const;
  std::optional<Forward> continue_stream(OpenRequest& request, schema::AttemptEnd end, std::uint64_t tokens,
                                         bool chat, Instant now);
  std::optional<Verdict> retry(OpenRequest& request, Ticket ticket, schema::AttemptEnd end, Instant now);
  void end_attempt(OpenRequest& request, schema::AttemptEnd end, std::uint64_t output_tokens, Instant now);
  void learn(const OpenRequest& request, const Usage& usage);
  void correct_cache(const OpenRequest& request, double cached_tokens);
  void limit_depth(EngineIndex engine);
  void charge(OpenRequest& request, double tokens, Instant now);
  void measure_delay(const OpenRequest& request, double output_tokens, Instant now);

  // Those who wait.
  Verdict wait(OpenRequest& request, Ticket ticket, Instant now);
  std::optional<Ready> next_ready(Instant now);
  std::optional<Ready> first_that_may_go(Instant now);
  void say_whether_any_wait();
  bool leaves_to_other_loops(Instant now);
  std::size_t queue_depth() const;
  bool owed_to_others(EngineIndex engine, const OpenRequest& request) const;
  bool outranked(const OpenRequest& request) const;

  // Reading.
  OpenRequest* find(Ticket ticket);
  RecordCore* record_of(const OpenRequest& request) {
    return records.find(request.sequence, count_of(request.sequence));
  }
  /// Writes into the request's record, wherever it is.
  template <class F>
  void note(const OpenRequest& request, F&& write) {
    if (RecordCore* core = record_of(request)) write(*core);
    if (request.lasting) write(request.lasting->core);
  }
  void file(const RecordCore& core, const FiledCosts& costs) {
    if (filing) filing->push(routing::filed(life, core, costs));
  }
  void file_end(const OpenRequest& request);
  void file_those_open_for_long(Instant now);
  std::uint64_t count_of(std::uint64_t sequence) const { return sequence * options.loops + options.loop; }
  Surroundings surroundings() const { return {*view, loads, penalties, cache}; }
  std::uint64_t seed_of(std::uint64_t sequence, std::uint32_t attempts) const {
    return mix64(options.seed ^ mix64(sequence * max_attempts + attempts));
  }
  void publish_inputs(const OpenRequest& request, const Ask& ask, std::uint64_t seed, Instant now);
  void publish_end(std::uint64_t sequence, Instant now);
  void hand_out(Batch& batch, Instant now);
  /// The record of a decision of this life and loop; null when its place was taken since.
  const RecordCore* kept(const DecisionId& id);
  std::optional<schema::DecisionRecord> explain_past(const DecisionId& id, Instant now);
  schema::DecisionRecord explain_next(const RequestFacts& facts, Instant now) const;

  DispatcherOptions options;
  std::shared_ptr<SharedState> shared;
  bool said_waiting = false;         ///< what the other loops were told
  Instant leaves_until = never_yet;  ///< free places are for other loops until then
  std::uint64_t life = 0;
  Rng rng;
  std::shared_ptr<const View> view;
  bool refusing = false;

  LoadTable loads;
  Penalties penalties;
  CacheIndex cache;
  CacheTrust trust;
  std::vector<CacheFacts> caches;  ///< by EngineIndex: as followed last
  EngineLimits limits;
  Lateness lateness;
  PlanGate gate;
  FloorCredits floors;
  TenantShares shares;
  WaitingRoom room;
  std::vector<Ticket> evicted;  ///< gave up their place in a queue and have to be told
  DrainRate drain_rate;
  RetryBudget budget;
  Sessions sessions;
  std::vector<ClassMeans> means;
  Counts counts;
  RecordRing records;
  std::unique_ptr<PlainQueue<FiledRecord>> filing;  ///< null: nothing is filed
  Publishing publishing;
  std::deque<PlanContext> contexts;  ///< the latest plans, for explanations
  std::size_t context_bytes = 0;

  std::deque<OpenRequest> requests;
  std::vector<std::uint32_t> free_slots;
  std::size_t open = 0;
  std::uint64_t next_sequence = 0;
  std::uint64_t sent_applied = 0;  ///< number of the last batch of other routers
  std::uint64_t next_batch = 1;
  Instant drained_at = never_yet;
  Decision decision;  ///< the last one; here so that it is not built anew each time
};

}  // namespace signalbox::routing
