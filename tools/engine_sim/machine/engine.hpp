// One inference engine as a pure machine: requests in, events out, time as an argument.
//
//   submit -> [waiting, first come first served] -> [batch: prefill in chunks, then one token a step] ->
//   finished
//                        ^                                   |
//                        +---- preempted: memory ran out ----+   (its blocks are given up and computed again)
//
// A step takes every decoding sequence and as many prefill tokens as the budget allows, and ends after
// StepCurve::seconds(). Its cost here is proportional to the batch, never to the memory.
//
// Simplifications: memory for a whole prompt is taken at admission; two sequences that compute the same
// prefix at once do not share it.
#pragma once

#include <cstdint>
#include <list>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "messages/base/rng.hpp"
#include "messages/base/time.hpp"
#include "tools/engine_sim/machine/blocks.hpp"
#include "tools/engine_sim/machine/counters.hpp"
#include "tools/engine_sim/machine/options.hpp"

namespace signalbox::engine_sim {

using RequestId = std::uint64_t;

struct Request {
  RequestId id = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 0;      ///< what the model would say if nobody stopped it; 0 for embeddings
  std::uint32_t max_output_tokens = 0;  ///< what the client allows
  /// Chained content hashes of the sequence's full blocks: of the prompt, and of the answer if the caller
  /// knows it (then a later turn finds the answer in the cache). May be shorter than the sequence; never 0.
  std::vector<BlockHash> blocks = {};
};

enum class Admission : std::uint8_t {
  accepted,
  queue_full,  ///< max_waiting requests wait already
  too_long,    ///< prompt and answer do not fit into the whole KV memory
  empty,       ///< no prompt token
  duplicate,   ///< a live request has this id
};
std::string_view to_string(Admission admission);

enum class EventKind : std::uint8_t {
  first_token,
  token,         ///< every further one; only with EngineOptions::report_tokens
  finished,      ///< its reason is `reason`
  preempted,     ///< back to the head of the queue
  block_stored,  ///< only with EngineOptions::report_blocks, as the next one
  block_removed,
};
std::string_view to_string(EventKind kind);

enum class FinishReason : std::uint8_t {
  stop,    ///< the model ended its answer
  length,  ///< max_output_tokens reached
};
std::string_view to_string(FinishReason reason);

struct Event {
  EventKind kind = EventKind::token;
  Instant at;
  RequestId request = 0;
  FinishReason reason = FinishReason::stop;
  std::uint32_t tokens = 0;         ///< generated so far
  std::uint32_t cached_tokens = 0;  ///< of the prompt, found in the cache at first admission
  BlockHash block = 0;              ///< block_stored, block_removed
  BlockHash parent = 0;             ///< block_stored: the block before it, 0 for the first one
};

/// What the engine would answer if asked now.
struct Load {
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint32_t kv_used_blocks = 0;
  std::uint32_t kv_blocks = 0;
  std::uint64_t context_tokens = 0;  ///< of the sequences in the batch
};

class Engine {
 public:
  /// Precondition: check(options) holds. The seed matters only with step_noise.
  Engine(const EngineOptions& options, std::uint64_t seed);

  /// An accepted request ends exactly once: by a finished event, or by a cancel() that returned true.
  /// Precondition: on_wake() was called for every next_wake() <= now.
  Admission submit(Request request, Instant now);
  /// True if the request was live; its memory is free for the next step.
  bool cancel(RequestId id, Instant now);
  /// Empties the prefix cache; what is in the batch goes on.
  void reset_prefix_cache() { pool_.forget_all(); }
  /// Faults take effect at once: what remains of the step in flight is stretched or held.
  void set_faults(const Faults& faults, Instant now);

  /// Completes every step that ends by now, appending what happened in order of time, and begins the next.
  void on_wake(Instant now, std::vector<Event>& events);
  /// When the next step ends or can begin; end_of_time when idle or frozen.
  Instant next_wake() const;

  const EngineOptions& options() const { return options_; }
  const Faults& faults() const { return faults_; }
  const Counters& counters() const { return counters_; }
  Load load() const;
  /// The tokens at the start of `blocks` that the prefix cache holds now.
  std::uint32_t cached_prefix_tokens(const std::vector<BlockHash>& blocks) const;
  const BlockPool& pool() const { return pool_; }
  /// For tests: memory is conserved, limits hold, sums agree with their parts. Walks everything.
  bool consistent() const;

 private:
  struct Sequence {
    Request request;
    std::vector<BlockId> memory;
    std::uint32_t generated = 0;
    std::uint32_t computed = 0;   ///< tokens whose KV is in memory
    std::uint32_t scheduled = 0;  ///< tokens that the step in flight computes
    std::uint32_t named = 0;      ///< blocks already offered to the prefix cache
    std::uint32_t cached_tokens = 0;
    bool admitted_before = false;
    Instant submitted_at, last_token_at;
    std::list<Sequence*>::iterator waiting_place;
    bool in_batch = false;

    std::uint32_t length() const { return request.prompt_tokens + generated; }
    bool decoding() const { return generated > 0 && length() - computed == 1; }
  };

  std::uint32_t answer_tokens(const Request& request) const;
  std::uint32_t blocks_for(std::uint32_t tokens) const;
  std::uint32_t find_prefix(const Sequence& sequence, std::vector<BlockId>& found) const;

  void begin_step(Instant now, std::vector<Event>& events);
  bool make_room_for_decoding(Instant now, std::vector<Event>& events);
  void preempt_youngest(Instant now, std::vector<Event>& events);
  bool admit(Sequence& sequence, Instant now, std::vector<Event>& events);
  void finish_step(std::vector<Event>& events);
  void observe_gap(Duration gap);
  void count_prompt(const Sequence& sequence);
  void produce_token(Sequence& sequence, Instant at, std::vector<Event>& events);
  void offer_blocks(Sequence& sequence, Instant at, std::vector<Event>& events);
  BlockId take_block(Instant at, std::vector<Event>& events);
  void give_up_memory(Sequence& sequence);
  bool ended(const Sequence& sequence) const;
  void finish(Sequence& sequence, Instant at, std::vector<Event>& events);
  double stretch() const { return faults_.slowness / options_.speed; }

  EngineOptions options_;
  Faults faults_;
  Rng rng_;
  BlockPool pool_;
  Counters counters_;
  std::unordered_map<RequestId, Sequence> live_;
  std::list<Sequence*> waiting_;
  std::vector<Sequence*> batch_;  ///< in order of admission: the last one is preempted first

  bool stepping_ = false;
  Instant step_ends_at_ = end_of_time;
  Duration held_ = Duration::zero();  ///< while frozen: what remains of the step in flight
  Instant can_begin_at_ = end_of_time;
  Duration gap_{};  ///< between tokens, of the `gaps_` sequences seen last in this step
  std::uint64_t gaps_ = 0;
  std::vector<BlockId> found_;  ///< scratch of admit()
};

}  // namespace signalbox::engine_sim
