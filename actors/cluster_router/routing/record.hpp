// What is kept of every decision, so that any of them can be explained for as long as it is in the ring.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/routing/decide.hpp"
#include "actors/cluster_router/routing/verdict.hpp"
#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::routing {

/// Microseconds, as records keep them: at least 1, so that 0 can mean "never", and saturating.
inline std::uint32_t record_us(Duration d) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(d / 1us, 1, UINT32_MAX));
}

/// Who served it: the last attempt, or the first one if the last was superseded. There is one.
inline EngineIndex engine_of(const std::vector<schema::AttemptRow>& attempts) {
  const bool superseded = attempts.back().end == schema::AttemptEnd::superseded;
  return (superseded ? attempts.front() : attempts.back()).engine;
}
/// The policy's rule by which a request has its class.
std::string rule_text(policy::Rule rule, std::string_view class_name, int line);

/// One attempt, in microseconds since the request's arrival (saturating at 71 minutes).
struct AttemptCore {
  std::uint32_t engine = UINT32_MAX;
  std::uint32_t began_us = 0;
  std::uint32_t first_byte_us = 0;  ///< 0: none came
  std::uint32_t ended_us = 0;       ///< 0: still open
  std::uint16_t status = 0;
  schema::AttemptEnd end = schema::AttemptEnd::open;
};

/// The core of a record: trivially copyable, of one size, fit for a file.
struct RecordCore {
  std::uint64_t count = 0;  ///< of its DecisionId
  std::uint64_t seed = 0;   ///< of the generator of its last decision
  std::int64_t arrived_ns = 0;
  std::uint64_t term = 0;
  std::uint64_t sequence = 0;
  std::uint32_t plan = 0;   ///< which of the dispatcher's plans
  std::uint32_t names = 0;  ///< fingerprint of policy and fleet table
  float snapshot_age_s = 0;
  std::uint32_t took_us = 0;
  float prompt_tokens = 0;
  float output_tokens = 0;  ///< expected, then measured
  std::uint16_t request_class = UINT16_MAX;
  std::uint16_t status = 0;
  schema::RefuseReason refused = schema::RefuseReason::none;
  policy::Rule rule = policy::Rule::matched;
  std::uint8_t attempts = 0;   ///< all of them; the first and the last are kept
  std::uint8_t continued = 0;  ///< times that the broken stream went on elsewhere
  bool degraded = false;
  bool sticky = false;
  std::array<AttemptCore, 2> kept;
};
static_assert(sizeof(RecordCore) <= 128 && std::is_trivially_copyable_v<RecordCore>);

inline constexpr std::size_t recorded_candidates = 8;

/// A candidate as recorded: what was believed of it and what it would have cost.
struct CandidateCore {
  std::uint32_t engine = UINT32_MAX;
  schema::CandidateFate fate = schema::CandidateFate::not_drawn;
  float weight = 0;
  float penalty = 1;
  float matched_tokens = 0;
  float requests = 0;
  float network_s = 0, queue_s = 0, prefill_s = 0, decode_s = 0, price_s = 0;
  float signal_age_s = -1;  ///< negative: no reading
};

/// The candidates of the last decision of a request; the chosen one is among them.
struct RecordDetail {
  std::array<CandidateCore, recorded_candidates> candidates;
  std::uint8_t count = 0;
};

/// What the rows of a record refer to. Kept apart from readings, which change too often to be kept.
struct PlanContext {
  std::uint32_t number = 0;
  std::uint32_t names = 0;  ///< fingerprint of policy and table
  std::shared_ptr<const policy::CompiledPolicy> policy;
  std::shared_ptr<const schema::FleetTable> table;
  std::shared_ptr<const schema::RoutingSnapshot> snapshot;
  std::shared_ptr<const PlanTables> tables;
  std::vector<HealthState> states;  ///< by EngineIndex
  Instant as_of = never_yet;
};

/// Its memory is taken as it is first used, a few rows at a time: a router that starts has no decisions to keep yet.
class RecordRing {
 public:
  explicit RecordRing(std::size_t capacity)
      : capacity_(std::max<std::size_t>(1, capacity)), chunks_((capacity_ + chunk_rows - 1) / chunk_rows) {}
  /// Takes the place of the oldest record.
  RecordCore& start(std::uint64_t sequence) {
    auto& chunk = chunks_[sequence % capacity_ / chunk_rows];
    if (!chunk) chunk = std::make_unique<Chunk>();
    Row& row = row_of(sequence);
    row.detail.count = 0;
    return row.core = RecordCore{};
  }
  /// The record of that sequence number, unless it was never started or `count` says that its place was taken since.
  RecordCore* find(std::uint64_t sequence, std::uint64_t count) {
    if (!chunks_[sequence % capacity_ / chunk_rows]) return nullptr;
    RecordCore& core = row_of(sequence).core;
    return core.count == count ? &core : nullptr;
  }
  /// Of a record that was started.
  RecordDetail& detail(std::uint64_t sequence) { return row_of(sequence).detail; }

 private:
  static constexpr std::size_t chunk_rows = 32;
  struct Row {
    RecordCore core;
    RecordDetail detail;
  };
  using Chunk = std::array<Row, chunk_rows>;
  Row& row_of(std::uint64_t sequence) {
    const std::size_t at = sequence % capacity_;
    return (*chunks_[at / chunk_rows])[at % chunk_rows];
  }

  std::size_t capacity_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

/// Copies a decision into a record's detail.
void note_candidates(const Decision& decision, const View& view, Instant now, RecordDetail& out);

}  // namespace signalbox::routing
