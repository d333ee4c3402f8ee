// What this event loop itself has in flight, and what is believed to be in flight at an engine in all.
//
// A reading of an engine describes a moment in the past. What this loop has sent or got back since then it knows
// exactly, so the belief is the reading, less what was ours in it, plus what is ours now, plus a share xi of our own
// moves for each other router (reference: routing rule, section 2; xi is the whole cure of staleness).
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <vector>

#include "actors/cluster_router/routing/view.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::routing {

/// What one attempt adds to its engine, in tokens.
struct Charge {
  std::uint32_t prefill = 0;  ///< prompt tokens that the cache misses, until the first byte
  std::uint32_t kv = 0;       ///< tokens that it will hold at its end
};

/// In flight from here to one engine.
struct OwnLoad {
  std::int64_t requests = 0;
  std::int64_t prefill_tokens = 0;
  std::int64_t kv_tokens = 0;
  friend bool operator==(const OwnLoad&, const OwnLoad&) = default;
};

/// An attempt's place in the LoadTable. It must be released before it dies.
class Hold {
 public:
  Hold() = default;
  Hold(Hold&& other) noexcept { *this = std::move(other); }
  Hold& operator=(Hold&& other) noexcept {
    assert(!held() || this == &other);
    engine_ = std::exchange(other.engine_, EngineIndex{});
    charge_ = other.charge_;
    return *this;
  }
  ~Hold() { assert(!held()); }

  bool held() const { return engine_.valid(); }
  EngineIndex engine() const { return engine_; }

 private:
  friend class LoadTable;
  EngineIndex engine_;
  Charge charge_;
};

class LoadTable {
 public:
  /// Starts over for a fleet of this size; `from[i]` is the old row of engine i, or none. Holds follow by renumber(). `all`: by
  /// row, what all loops of the router have in flight there; empty if this is the only one.
  void remap(const std::vector<EngineIndex>& from, const std::vector<std::atomic<std::int64_t>*>& all = {});
  /// The hold's engine has another row now. An engine that is gone from the table: the hold is dropped.
  void renumber(Hold& hold, EngineIndex row) const { hold.engine_ = row; }

  /// Takes a place within the policy's cap, which holds for all loops together. False: another loop took the last one since it was
  /// looked at. Then either take() or give_back() follows.
  bool reserve(EngineIndex engine, std::uint32_t cap);
  void give_back(EngineIndex engine);
  Hold take(EngineIndex engine, Charge charge, Instant now);
  /// Its first byte came: its prompt no longer waits.
  void prefilled(Hold& hold, Instant now);
  void release(Hold& hold, Instant now);
  /// The view's reading of this engine describes this time: finds what was ours then.
  void reading(EngineIndex engine, Instant described_at);

  /// No more than this is to be in flight from here, whatever the policy's cap.
  void set_limit(EngineIndex engine, std::int64_t limit) {
    entries_[engine.at()].limit = static_cast<std::int32_t>(std::min<std::int64_t>(limit, INT32_MAX));
  }
  /// The lesser of what the other loops leave of the policy's cap and our own limit.
  std::int64_t limit(EngineIndex engine, std::uint32_t cap) const {
    const Entry& entry = entries_[engine.at()];
    std::int64_t left = cap;
    if (entry.all != nullptr) left -= std::max<std::int64_t>(0, entry.all->load() - entry.own.requests);
    return std::min<std::int64_t>(entry.limit, left);
  }
  bool full(EngineIndex engine, std::uint32_t cap) const {
    return own(engine).requests >= limit(engine, cap);
  }

  /// What the other routers are known to have sent since the last call, of prompt tokens to compute there. They are taken to wait until
  /// the engine has computed them, in turn with ours, a token in `token_s` seconds: readings count prompts that wait, not how long they are.
  void sent_elsewhere(EngineIndex engine, std::int64_t tokens, double token_s, Instant now);

  const OwnLoad& own(EngineIndex engine) const { return entries_[engine.at()].own; }
  std::int64_t elsewhere(EngineIndex engine) const { return entries_[engine.at()].waiting_elsewhere; }
  /// Ours, and the others' prompts that are known to wait.
  OwnLoad known(EngineIndex engine) const { return with_others(entries_[engine.at()].own, engine); }
  OwnLoad known_at_reading(EngineIndex engine) const {
    return with_others(entries_[engine.at()].at_reading, engine);
  }
  /// What was ours at the time that the reading describes.
  const OwnLoad& own_at_reading(EngineIndex engine) const { return entries_[engine.at()].at_reading; }
  std::size_t size() const { return entries_.size(); }

 private:
  /// What decide() reads of an engine here: one line of the cache.
  struct alignas(64) Entry {
    OwnLoad own;
    OwnLoad at_reading;
    std::int32_t limit = INT32_MAX;
    std::int32_t waiting_elsewhere = 0;        ///< prompt tokens of other routers
    std::atomic<std::int64_t>* all = nullptr;  ///< requests of all loops; null: this is the only one
  };
  static_assert(sizeof(Entry) == 64);
  /// The load was `load` until `until`, since the moment before.
  struct Past {
    Instant until = never_yet;
    OwnLoad load;
  };
  static constexpr std::size_t kept = 16;
  static constexpr Duration spacing = 50ms;  ///< readings describe times with no more precision than this
  struct History {
    Past past[kept];
    std::uint32_t next = 0;
    Instant described_at = never_yet;
    Instant elsewhere_at = never_yet;
  };
  void remember(EngineIndex engine, Instant now);
  OwnLoad with_others(OwnLoad load, EngineIndex engine) const {
    load.prefill_tokens += entries_[engine.at()].waiting_elsewhere;
    return load;
  }

  std::vector<Entry> entries_;
  std::vector<History> histories_;
};

/// What is believed of one engine when a decision is made. Floats: these are recorded, and a replay starts from them.
struct Belief {
  float requests = 0;        ///< N
  float prefill_tokens = 0;  ///< P, waiting
  float kv_tokens = 0;       ///< K
};

/// Of a request that waits at an engine nothing is known but what its class is like.
struct QueuedShape {
  double uncached_tokens = 0;  ///< mean
  double context_tokens = 0;
};

/// N, P and K. `fresh`: the reading is young enough to be used.
/// `elsewhere`: prompt tokens of other routers that are known to wait.
inline Belief believe(const EngineFacts& facts, const OwnLoad& own, const OwnLoad& then,
                      std::int64_t elsewhere, bool fresh, const QueuedShape& queued, double others,
                      double xi) {
  const double moves = 1 + xi * others;  // of all routers, by one of ours
  // A reading that is missing says nothing: the other routers are then taken to send as much as this one.
  const auto ours_times = [&](std::int64_t now) {
    return static_cast<float>(static_cast<double>(now) * (others + 1));
  };
  const std::int64_t prompts = own.prefill_tokens + elsewhere;
  if (!fresh) return {ours_times(own.requests), ours_times(prompts), ours_times(own.kv_tokens)};
  const auto all = [&](double reading, std::int64_t now, std::int64_t was) {
    if (!(reading >= 0)) return ours_times(now);
    const auto mine = static_cast<double>(now), before = static_cast<double>(was);
    return static_cast<float>(std::max(mine, std::max(reading, before) + moves * (mine - before)));
  };
  // Requests that share a beginning hold it once: what they hold in all may be less than the sum of our own.
  const auto held = [&](double reading, std::int64_t now, std::int64_t was) {
    if (!(reading >= 0)) return ours_times(now);
    return static_cast<float>(std::max(0.0, reading + moves * static_cast<double>(now - was)));
  };
  const double waiting = std::max(0.0, facts.waiting);
  return {all(facts.requests, own.requests, then.requests),
          all(facts.waiting * queued.uncached_tokens, prompts, then.prefill_tokens + elsewhere),
          held(facts.kv_used + waiting * queued.context_tokens, own.kv_tokens, then.kv_tokens)};
}

}  // namespace signalbox::routing
