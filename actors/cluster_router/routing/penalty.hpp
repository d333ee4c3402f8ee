// Penalties: what this loop has seen of an engine that the plan cannot know yet.
//
// Each failure multiplies the engine's weight by factor^(2^-(age / half_life)). The logarithms of all failures decay
// alike, so that their sum is kept as one number. A failure belongs to the batch that carries it out; a snapshot that
// covers that batch ends it: one failure counts once, here or in the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster-config/policy/compiled.hpp"
#include "messages/base/bounded.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::routing {

class Penalties {
 public:
  void configure(const policy::Penalty& numbers) { numbers_ = numbers; }
  /// `from[i]` is the old row of engine i, or none.
  void remap(const std::vector<EngineIndex>& from);
  /// A new life starts with a clean record. True if the engine had another life before.
  bool incarnation(EngineIndex engine, const Incarnation& life);

  void failure(EngineIndex engine, policy::FailureKind kind, Instant now);
  /// The engine asked to be left alone; honoured up to the policy's cap.
  void retry_after(EngineIndex engine, Duration wait, Instant now);
  /// What failed until now is carried by this batch. Forgets what has decayed to nothing.
  void carried_by(std::uint64_t batch, Instant now);
  /// The snapshot in force knows all batches up to this one.
  void covered(std::uint64_t batch);

  /// In [floor, 1]; exactly 1 for an engine without a record.
  double multiplier(EngineIndex engine, Instant now) const {
    return clean_[engine.at()] ? 1.0 : penalised(engine, now);
  }

 private:
  static constexpr std::uint64_t not_carried = UINT64_MAX;
  /// The failures of one batch: the sum of their log factors as of `at`.
  struct Share {
    std::uint64_t batch = not_carried;
    double log = 0;
    Instant at = never_yet;
  };
  struct Record {
    Incarnation life;
    bool known = false;
    FixedVector<Share, 8> shares;  ///< ascending batches
    Instant alone_until = never_yet;
  };
  double penalised(EngineIndex engine, Instant now) const;
  double decayed(const Share& share, Instant now) const;
  void drop_front(EngineIndex engine, std::size_t count);
  void settle(EngineIndex engine);

  policy::Penalty numbers_;
  std::vector<std::uint8_t> clean_;
  std::vector<Record> records_;
};

}  // namespace signalbox::routing
