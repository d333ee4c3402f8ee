// Counts between two drains, in the rows of the messages that will carry them.
#pragma once

#include <unordered_map>
#include <vector>

#include "actors/cluster_router/routing/batch.hpp"
#include "actors/cluster_router/routing/hot_prefixes.hpp"
#include "actors/cluster_router/routing/load.hpp"
#include "actors/cluster_router/routing/penalty.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

/// One attempt that ended, with its times.
struct EndedAttempt {
  EngineIndex engine;
  ClassIndex request_class;
  schema::AttemptEnd end = schema::AttemptEnd::open;
  Instant arrived;                 ///< of the request
  Instant began;                   ///< of the attempt
  Instant first_byte = never_yet;  ///< never_yet: none came
  Instant ended;
  std::uint64_t output_tokens = 0;
};

class Counts {
 public:
  explicit Counts(std::size_t most_sent_rows) : most_sent_rows_(most_sent_rows) {}

  /// `from[i]` is the old row of i, or none; counts of what is gone are dropped.
  void remap_classes(const std::vector<ClassIndex>& from);
  void remap_engines(const std::vector<EngineIndex>& from);

  schema::DemandRow& demand(ClassIndex request_class) { return demand_[request_class.at()]; }
  /// A request came with these blocks.
  void came(ClassIndex request_class, std::span<const std::uint64_t> blocks) {
    hot_.saw(request_class, blocks);
  }
  void connected(EngineIndex engine, Duration took);
  void ended(const EndedAttempt& attempt);
  void retry_denied() { ++retries_denied_; }
  /// The blocks of a prompt that went to this engine: its tail first, so that its head is forgotten last.
  void sent(EngineIndex engine, std::span<const std::uint64_t> blocks);

  /// Moves everything into `batch` and starts over. Engines appear that did something, hold something or are penalised,
  /// and once more after that.
  void drain(const LoadTable& loads, const Penalties& penalties, Instant now, Batch& batch);

 private:
  struct PerEngine {
    schema::OutcomeRow row;
    double connect_s = 0;     ///< smoothed; 0: never measured
    double first_byte_s = 0;  ///< smoothed; 0: never measured
    bool listed = false;      ///< in the last batch
  };
  void serve(const EndedAttempt& attempt);

  std::size_t most_sent_rows_;
  std::vector<schema::DemandRow> demand_;
  HotPrefixes hot_;
  std::vector<PerEngine> engines_;
  std::unordered_map<std::uint64_t, schema::ServedRow> served_;  ///< by class and engine
  std::vector<schema::SentRow> sent_;
  std::uint64_t sent_dropped_ = 0, retries_denied_ = 0;
};

}  // namespace signalbox::routing
