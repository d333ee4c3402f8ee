// Follows one engine's KV events through gaps, restarts and slow joins.
//
//   subscribe, ask for everything from 0 ──▶ syncing: live batches wait ──▶ what was asked for has come ──▶ following
//                                               ▲                                                        │
//                                               └── a number is missing: ask from there ◀────────────────┘
//   a number that has been, or the last one with another content: the engine was started anew; its cache is empty, begin again
//   nobody to ask, or no answer: what is missing stays unknown, until the engine says that it emptied its cache
//
// Its memory does not grow with the engine's: it keeps totals, and at most `most_waiting` small counts while it syncs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "actors/engine_proxy/events/kv_batch.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/signals.hpp"

namespace signalbox::engine_proxy {

/// What is known of the engine's cache by its events.
struct KvState {
  schema::CacheKnowledge knowledge = schema::CacheKnowledge::unknown;
  std::uint64_t clears = 0;
  std::uint64_t held_blocks = 0;  ///< 0 unless knowledge is complete
  std::uint64_t stored = 0, removed = 0;
  std::uint64_t batches = 0, missed = 0, replayed = 0, unreadable = 0;
  std::uint64_t events_skipped = 0;
  std::uint32_t block_tokens = 0;
  friend bool operator==(const KvState&, const KvState&) = default;
};

class KvFollower {
 public:
  static constexpr std::size_t most_waiting = 10'000;  ///< as many as engines keep for a replay
  static constexpr Duration patience = 2s;             ///< without a word of a replay

  explicit KvFollower(bool can_ask) : can_ask_(can_ask) {}

  /// A number from which the engine is to send again; to be asked after every other call, and first of all.
  std::optional<std::uint64_t> take_question(Instant now);
  /// `counts`: nothing if the batch could not be read.
  void live(std::uint64_t number, const std::optional<KvCounts>& counts, Instant now);
  void replayed(std::uint64_t number, const std::optional<KvCounts>& counts, Instant now);
  void replay_ended(Instant now);
  /// The connection stands, or stands again: perhaps to another life of the engine.
  void connected();
  /// Gives up a replay that does not come.
  void on_wake(Instant now);
  Instant next_wake() const { return asking_ ? heard_ + patience : end_of_time; }

  const KvState& state() const { return state_; }
  /// The first replay is over, or there was nobody to ask: state() is worth telling.
  bool settled() const { return !asking_ && (started_ || !can_ask_); }

 private:
  void take(std::uint64_t number, const std::optional<KvCounts>& counts);
  void lose(std::uint64_t batches);
  void begin_anew();
  void go_on(Instant now);
  void ask(std::uint64_t from);
  void ask_for_rest();

  bool can_ask_;
  bool started_ = false;
  bool asking_ = false;
  std::uint64_t asked_ = 0;  ///< from where
  bool answered_ = false;    ///< with a batch at least
  std::optional<std::uint64_t> question_;
  std::uint64_t next_ = 0;                  ///< the number that follows
  std::uint64_t last_ = 0;                  ///< fingerprint of the one before it
  bool joined_ = false;                     ///< next_ is known
  std::optional<std::uint64_t> live_last_;  ///< last number heard live in this life
  Instant heard_ = never_yet;               ///< a word of the replay
  Instant replay_over_ = never_yet;
  std::map<std::uint64_t, std::optional<KvCounts>> waiting_;  ///< live batches during a replay
  std::uint64_t stored_ = 0, removed_ = 0;                    ///< since the cache was empty
  bool whole_ = false;                                        ///< nothing is missing since then
  KvState state_;
};

}  // namespace signalbox::engine_proxy
