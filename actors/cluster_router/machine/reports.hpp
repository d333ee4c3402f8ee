// Adds the event loops' batches up into the router's periodic reports.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "actors/cluster_router/routing/batch.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::cluster_router {

class Reports {
 public:
  explicit Reports(ClusterName cluster) : cluster_(std::move(cluster)) {}

  /// True if the batch speaks of another policy or table than what was gathered: take() first, then add again.
  bool is_foreign(const routing::Batch& batch) const;
  void add(const routing::Batch& batch);

  struct Pair {
    schema::DemandReport demand;
    schema::OutcomeReport outcome;
  };
  /// What was gathered since the last take; it covers `period`. Rows ascend.
  Pair take(Duration period);
  bool empty() const { return policy_.is_zero(); }

  /// By loop: the last batch within the report of this number or before; what a snapshot that covers it has seen.
  std::vector<std::uint64_t> batches_of(std::uint64_t report) const;

 private:
  struct Loop {
    std::uint64_t last = 0;                            ///< batch number
    std::map<EngineIndex, schema::OutcomeRow> gauges;  ///< the loop's last word on what is in flight
  };
  struct Sealed {
    std::uint64_t report;
    std::vector<std::uint64_t> batches;
  };
  static constexpr std::size_t sealed_kept = 256;

  ClusterName cluster_;
  Digest policy_, table_;
  std::map<ClassIndex, schema::DemandRow> demand_;
  static constexpr std::size_t most_groups = 1000;  ///< as the message takes
  std::map<std::pair<ClassIndex, std::uint64_t>, schema::HotGroupRow> groups_;
  std::map<EngineIndex, schema::OutcomeRow> outcomes_;
  std::map<std::pair<ClassIndex, EngineIndex>, schema::ServedRow> served_;
  std::map<std::uint32_t, Loop> loops_;
  std::deque<Sealed> sealed_;
  std::uint64_t number_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace signalbox::cluster_router
