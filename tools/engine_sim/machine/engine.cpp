#include "tools/engine_sim/machine/engine.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string_view>
#include <utility>

namespace signalbox::engine_sim {

std::string_view to_string(Admission admission) {
  switch (admission) {
    case Admission::accepted: return "accepted";
    case Admission::queue_full: return "queue_full";
    case Admission::too_long: return "too_long";
    case Admission::empty: return "empty";
    case Admission::duplicate: return "duplicate";
  }
  return "?";
}

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::first_token: return "first_token";
    case EventKind::token: return "token";
    case EventKind::finished: return "finished";
    case EventKind::preempted: return "preempted";
    case EventKind::block_stored: return "block_stored";
    case EventKind::block_removed: return "block_removed";
  }
  return "?";
}

std::string_view to_string(FinishReason reason) {
  return reason == FinishReason::stop ? std::string_view("stop") : std::string_view("length");
}

Engine::Engine(const EngineOptions& options, std::uint64_t seed)
    : options_(options), rng_(seed), pool_(options.kv_blocks) {
  assert(check(options).has_value());
  batch_.reserve(options.max_batch);
}

std::uint32_t Engine::answer_tokens(const Request& request) const {
  return std::min(request.output_tokens, request.max_output_tokens);
}

std::uint32_t Engine::blocks_for(std::uint32_t tokens) const {
  return (tokens + options_.block_tokens - 1) / options_.block_tokens;
}

Admission Engine::submit(Request request, Instant now) {
  const auto refuse = [&](Admission why) { return ++counters_.refused, why; };
  if (request.prompt_tokens == 0) return refuse(Admission::empty);
  const std::uint64_t room = std::uint64_t{options_.kv_blocks} * options_.block_tokens;
  if (std::uint64_t{request.prompt_tokens} + answer_tokens(request) > room)
    return refuse(Admission::too_long);
  if (waiting_.size() >= options_.max_waiting) return refuse(Admission::queue_full);
  const RequestId id = request.id;
  const auto [place, fresh] = live_.try_emplace(id);
  if (!fresh) return refuse(Admission::duplicate);

  Sequence& sequence = place->second;
  sequence.request = std::move(request);
  sequence.submitted_at = now;
  sequence.last_token_at = never_yet;
  sequence.waiting_place = waiting_.insert(waiting_.end(), &sequence);
  ++counters_.accepted;
  if (!stepping_) can_begin_at_ = std::min(can_begin_at_, now);
  return Admission::accepted;
}

bool Engine::cancel(RequestId id, Instant now) {
  const auto found = live_.find(id);
  if (found == live_.end()) return false;
  Sequence& sequence = found->second;
  if (sequence.in_batch) {
    give_up_memory(sequence);
    batch_.erase(std::find(batch_.begin(), batch_.end(), &sequence));
  } else {
    waiting_.erase(sequence.waiting_place);
  }
  ++counters_.finished_cancelled;
  counters_.e2e_s.observe(to_seconds(now - sequence.submitted_at));
  live_.erase(found);
  return true;
}

void Engine::set_faults(const Faults& faults, Instant now) {
  if (stepping_) {
    const Duration remaining = faults_.frozen ? held_ : std::max(Duration::zero(), step_ends_at_ - now);
    held_ = from_seconds(to_seconds(remaining) * faults.slowness / faults_.slowness);
    step_ends_at_ = faults.frozen ? end_of_time : now + held_;
  } else if (faults_.frozen && !live_.empty()) {
    can_begin_at_ = now;
  }
  faults_ = faults;
}

Instant Engine::next_wake() const {
  if (faults_.frozen) return end_of_time;
  return stepping_ ? step_ends_at_ : can_begin_at_;
}

void Engine::on_wake(Instant now, std::vector<Event>& events) {
  while (next_wake() <= now) {
    const Instant at = next_wake();
    if (stepping_) finish_step(events);
    begin_step(at, events);
  }
}

// vLLM's order: who decodes goes first, then who is in the middle of its prompt, then who waits; nobody is
// admitted in a step that had to preempt.
void Engine::begin_step(Instant now, std::vector<Event>& events) {
  stepping_ = false;
  can_begin_at_ = end_of_time;
  const bool roomy = make_room_for_decoding(now, events);

  std::size_t decoding = 0, context = 0;
  std::uint32_t budget = options_.step_tokens;
  for (Sequence* sequence : batch_) {
    sequence->scheduled = 0;
    if (!sequence->decoding()) continue;
    sequence->scheduled = 1;
    ++decoding;
    context += sequence->length();
    --budget;
  }
  std::size_t prefill = 0;
  const auto schedule_chunk = [&](Sequence& sequence) {
    sequence.scheduled = std::min({sequence.length() - sequence.computed, options_.chunk_tokens, budget});
    budget -= sequence.scheduled;
    prefill += sequence.scheduled;
  };
  for (Sequence* sequence : batch_)
    if (!sequence->decoding()) schedule_chunk(*sequence);
  while (roomy && budget > 0 && !waiting_.empty() && batch_.size() < options_.max_batch) {
    Sequence& next = *waiting_.front();
    if (!admit(next, now, events)) break;
    schedule_chunk(next);
  }
  if (batch_.empty()) return;

  double seconds = options_.curve.seconds(decoding, context, prefill) * stretch();
  if (options_.step_noise > 0) seconds *= std::exp(options_.step_noise * rng_.normal());
  stepping_ = true;
  step_ends_at_ = now + std::max(Duration{1}, from_seconds(seconds));
  counters_.prefill_tokens += prefill;
  ++counters_.steps;
}

// A decoding sequence that begins a new block needs one. The oldest always gets one, since every accepted
// request fits into the whole memory: so the engine always makes progress.
bool Engine::make_room_for_decoding(Instant now, std::vector<Event>& events) {
  bool roomy = true;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    Sequence& sequence = *batch_[i];
    while (sequence.in_batch && sequence.memory.size() * options_.block_tokens < sequence.length()) {
      if (pool_.free_blocks() > 0) {
        sequence.memory.push_back(take_block(now, events));
        continue;
      }
      preempt_youngest(now, events);
      roomy = false;
    }
  }
  return roomy;
}

void Engine::preempt_youngest(Instant now, std::vector<Event>& events) {
  Sequence& victim = *batch_.back();
  batch_.pop_back();
  give_up_memory(victim);
  victim.computed = victim.named = victim.scheduled = 0;
  victim.in_batch = false;
  victim.waiting_place = waiting_.insert(waiting_.begin(), &victim);
  ++counters_.preemptions;
  events.push_back({.kind = EventKind::preempted,
                    .at = now,
                    .request = victim.request.id,
                    .tokens = victim.generated,
                    .cached_tokens = victim.cached_tokens});
}

// At least one token is always computed: the next one cannot be had from memory alone.
std::uint32_t Engine::find_prefix(const Sequence& sequence, std::vector<BlockId>& found) const {
  found.clear();
  if (!options_.prefix_caching) return 0;
  const std::size_t most = (sequence.length() - 1) / options_.block_tokens;
  std::uint32_t unreferenced = 0;
  for (const BlockHash hash : sequence.request.blocks) {
    if (found.size() == most) break;
    const auto block = pool_.find(hash);
    if (!block) break;
    found.push_back(*block);
    unreferenced += pool_.is_free(*block);
  }
  return unreferenced;
}

bool Engine::admit(Sequence& sequence, Instant now, std::vector<Event>& events) {
  const std::uint32_t unreferenced = find_prefix(sequence, found_);
  const std::uint32_t needed = blocks_for(sequence.length());
  const auto hits = static_cast<std::uint32_t>(found_.size());
  if (needed - hits + unreferenced > pool_.free_blocks()) return false;

  waiting_.pop_front();
  batch_.push_back(&sequence);
  sequence.in_batch = true;
  for (const BlockId block : found_) pool_.share(block);
  sequence.memory = found_;
  sequence.memory.reserve(blocks_for(sequence.request.prompt_tokens + answer_tokens(sequence.request)));
  while (sequence.memory.size() < needed) sequence.memory.push_back(take_block(now, events));
  sequence.computed = hits * options_.block_tokens;
  sequence.named = hits;
  if (sequence.admitted_before) return true;

  sequence.admitted_before = true;
  sequence.cached_tokens = sequence.computed;
  counters_.queue_s.observe(to_seconds(now - sequence.submitted_at));
  if (options_.prefix_caching) {
    counters_.prefix_queries += sequence.request.prompt_tokens;
    counters_.prefix_hits += sequence.cached_tokens;
  }
  return true;
}

void Engine::finish_step(std::vector<Event>& events) {
  const Instant at = step_ends_at_;
  const std::uint64_t before = counters_.prompt_tokens + counters_.generation_tokens;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    Sequence& sequence = *batch_[i];
    sequence.computed += std::exchange(sequence.scheduled, 0);
    offer_blocks(sequence, at, events);
    const bool complete = sequence.computed == sequence.length();
    if (complete && sequence.generated == 0) count_prompt(sequence);
    if (complete && answer_tokens(sequence.request) > 0) produce_token(sequence, at, events);
    if (complete && ended(sequence))
      finish(sequence, at, events);
    else
      batch_[kept++] = &sequence;
  }
  batch_.resize(kept);
  if (gaps_ > 0) counters_.inter_token_s.observe(to_seconds(gap_), std::exchange(gaps_, 0));
  counters_.iteration_tokens.observe(
      static_cast<double>(counters_.prompt_tokens + counters_.generation_tokens - before));
}

// vLLM counts a prompt when it is complete, all of it at once.
void Engine::count_prompt(const Sequence& sequence) {
  counters_.prompt_tokens += sequence.request.prompt_tokens;
  counters_.prompt_tokens_cached += sequence.cached_tokens;
}

// All sequences that decoded in the step before have the same gap: they are observed together.
void Engine::observe_gap(Duration gap) {
  if (gap != gap_ && gaps_ > 0) counters_.inter_token_s.observe(to_seconds(gap_), std::exchange(gaps_, 0));
  gap_ = gap;
  ++gaps_;
}

void Engine::produce_token(Sequence& sequence, Instant at, std::vector<Event>& events) {
  ++sequence.generated;
  ++counters_.generation_tokens;
  const bool first = sequence.generated == 1;
  if (first)
    counters_.first_token_s.observe(to_seconds(at - sequence.submitted_at));
  else
    observe_gap(at - sequence.last_token_at);
  sequence.last_token_at = at;
  if (first || options_.report_tokens)
    events.push_back({.kind = first ? EventKind::first_token : EventKind::token,
                      .at = at,
                      .request = sequence.request.id,
                      .tokens = sequence.generated,
                      .cached_tokens = sequence.cached_tokens});
}

void Engine::offer_blocks(Sequence& sequence, Instant at, std::vector<Event>& events) {
  if (!options_.prefix_caching) return;
  const auto& hashes = sequence.request.blocks;
  while (sequence.named < hashes.size() &&
         (sequence.named + 1) * options_.block_tokens <= sequence.computed) {
    const std::uint32_t i = sequence.named++;
    if (pool_.name(sequence.memory[i], hashes[i]) && options_.report_blocks)
      events.push_back({.kind = EventKind::block_stored,
                        .at = at,
                        .request = sequence.request.id,
                        .block = hashes[i],
                        .parent = i > 0 ? hashes[i - 1] : 0});
  }
}

BlockId Engine::take_block(Instant at, std::vector<Event>& events) {
  BlockHash evicted = 0;
  const BlockId block = pool_.take(evicted);
  if (evicted != 0 && options_.report_blocks)
    events.push_back({.kind = EventKind::block_removed, .at = at, .block = evicted});
  return block;
}

// From the end to the start: the root of a prefix serves more requests than its leaves, so it is evicted
// last.
void Engine::give_up_memory(Sequence& sequence) {
  for (auto block = sequence.memory.rbegin(); block != sequence.memory.rend(); ++block) pool_.release(*block);
  sequence.memory.clear();
}

bool Engine::ended(const Sequence& sequence) const {
  return sequence.generated >= answer_tokens(sequence.request);
}

void Engine::finish(Sequence& sequence, Instant at, std::vector<Event>& events) {
  const Request& request = sequence.request;
  const bool stopped = request.output_tokens < request.max_output_tokens || request.output_tokens == 0;
  ++(stopped ? counters_.finished_stop : counters_.finished_length);
  counters_.e2e_s.observe(to_seconds(at - sequence.submitted_at));
  events.push_back({.kind = EventKind::finished,
                    .at = at,
                    .request = request.id,
                    .reason = stopped ? FinishReason::stop : FinishReason::length,
                    .tokens = sequence.generated,
                    .cached_tokens = sequence.cached_tokens});
  give_up_memory(sequence);
  live_.erase(live_.find(request.id));
}

Load Engine::load() const {
  Load load{.running = static_cast<std::uint32_t>(batch_.size()),
            .waiting = static_cast<std::uint32_t>(waiting_.size()),
            .kv_used_blocks = pool_.used_blocks(),
            .kv_blocks = pool_.total()};
  for (const Sequence* sequence : batch_) load.context_tokens += sequence->length();
  return load;
}

std::uint32_t Engine::cached_prefix_tokens(const std::vector<BlockHash>& blocks) const {
  const auto missing =
      std::find_if(blocks.begin(), blocks.end(), [&](BlockHash hash) { return !pool_.find(hash); });
  return static_cast<std::uint32_t>(missing - blocks.begin()) * options_.block_tokens;
}

bool Engine::consistent() const {
  if (!pool_.consistent() || batch_.size() > options_.max_batch) return false;
  if (batch_.size() + waiting_.size() != live_.size()) return false;
  std::vector<bool> referenced(pool_.total());
  for (const Sequence* sequence : batch_) {
    if (!sequence->in_batch || sequence->computed > sequence->length()) return false;
    if (sequence->memory.size() < blocks_for(sequence->computed)) return false;
    for (const BlockId block : sequence->memory) referenced[block] = true;
  }
  for (const Sequence* sequence : waiting_)
    if (sequence->in_batch || !sequence->memory.empty()) return false;
  return static_cast<std::uint32_t>(std::count(referenced.begin(), referenced.end(), true)) ==
         pool_.used_blocks();
}

}  // namespace signalbox::engine_sim
