#include <fmt/format.h>

#include <cmath>

#include "actors/cluster_router/routing/eligibility.hpp"
#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::routing {

namespace {

using schema::ReceiptReason;

/// How far from 1 the weights of a class may sum: they are rounded sums of a few thousand doubles.
constexpr double sum_tolerance = 1e-6;

Refusal illegal(std::string detail) { return {ReceiptReason::illegal, std::move(detail)}; }

class SnapshotCheck {
 public:
  SnapshotCheck(const schema::RoutingSnapshot& snapshot, const policy::CompiledPolicy& policy,
                const schema::FleetTable& table)
      : snapshot_(snapshot), policy_(policy), table_(table) {}

  std::optional<Refusal> run() {
    if (auto refusal = allowed_sets()) return refusal;
    if (auto refusal = admits()) return refusal;
    if (auto refusal = prices()) return refusal;
    if (auto refusal = groups()) return refusal;
    return weights();
  }

 private:
  std::optional<Refusal> allowed_sets() {
    allowed_ = allowed_by_policy(policy_, table_);
    for (const auto& row : snapshot_.allowed) {
      if (row.request_class.at() >= policy_.classes.size())
        return illegal(
            fmt::format("allowed: class {} of {}", row.request_class.value, policy_.classes.size()));
      const EngineSet set = set_of_bits(row.engines, table_.engines.size());
      EngineSet& by_policy = allowed_[row.request_class.at()];
      if (!set.subset_of(by_policy))
        return illegal(fmt::format("the allowed set of class {} holds an engine that the policy forbids it",
                                   policy_.at(row.request_class).name));
      by_policy = set;
    }
    return std::nullopt;
  }

  std::optional<Refusal> admits() const {
    for (const auto& row : snapshot_.admits) {
      if (row.request_class.at() >= policy_.classes.size())
        return illegal(
            fmt::format("admits: class {} of {}", row.request_class.value, policy_.classes.size()));
      if (!(row.admit >= 0 && row.admit <= 1))
        return illegal(
            fmt::format("class {} is admitted to {}", policy_.at(row.request_class).name, row.admit));
    }
    return std::nullopt;
  }

  std::optional<Refusal> prices() const {
    for (const auto& row : snapshot_.prices) {
      if (row.engine.at() >= table_.engines.size())
        return illegal(fmt::format("prices: engine {} of {}", row.engine.value, table_.engines.size()));
      const double sum = row.price + row.planned_load + row.capacity + row.slowness;
      if (!std::isfinite(sum) || row.price < 0 || row.planned_load < 0 || row.capacity < 0)
        return illegal(
            fmt::format("prices: numbers of {} are out of range", table_.engines[row.engine.at()].name));
    }
    return std::nullopt;
  }

  std::optional<Refusal> groups() const {
    for (const auto& row : snapshot_.groups) {
      if (row.request_class.at() >= policy_.classes.size() || row.engine.at() >= table_.engines.size())
        return illegal(fmt::format("groups: class {} of {}, engine {} of {}", row.request_class.value,
                                   policy_.classes.size(), row.engine.value, table_.engines.size()));
      if (!allowed_[row.request_class.at()].contains(row.engine))
        return illegal(fmt::format("class {} may not use {}, yet a group of it is held there",
                                   policy_.at(row.request_class).name, table_.engines[row.engine.at()].name));
      if (!(row.prefix_tokens > 0) || !std::isfinite(row.prefix_tokens))
        return illegal(fmt::format("a group of {} tokens", row.prefix_tokens));
    }
    return std::nullopt;
  }

  std::optional<Refusal> weights() const {
    const auto& rows = snapshot_.weights;
    for (std::size_t first = 0; first < rows.size();) {
      std::size_t end = first;
      double sum = 0;
      for (; end < rows.size() && rows[end].request_class == rows[first].request_class; ++end) {
        if (auto refusal = weight(rows[end], end > first ? &rows[end - 1] : nullptr)) return refusal;
        sum += rows[end].weight;
      }
      if (std::abs(sum - 1.0) > sum_tolerance && sum != 0.0)
        return illegal(fmt::format("the weights of class {} sum to {}, not to 1",
                                   policy_.at(rows[first].request_class).name, sum));
      if (end < rows.size() && rows[end].request_class < rows[first].request_class)
        return illegal(fmt::format("weights: row {} is out of order", end));
      first = end;
    }
    return std::nullopt;
  }

  std::optional<Refusal> weight(const schema::WeightRow& row, const schema::WeightRow* before) const {
    if (row.request_class.at() >= policy_.classes.size() || row.engine.at() >= table_.engines.size())
      return illegal(fmt::format("weights: class {} of {}, engine {} of {}", row.request_class.value,
                                 policy_.classes.size(), row.engine.value, table_.engines.size()));
    const auto& name = table_.engines[row.engine.at()].name;
    if (before != nullptr && !(before->engine < row.engine))
      return illegal(
          fmt::format("weights of class {}: {} is out of order", policy_.at(row.request_class).name, name));
    if (!std::isfinite(row.weight) || row.weight < 0)
      return illegal(fmt::format("the weight of {} is {}", name, row.weight));
    if (row.weight > 0 && !allowed_[row.request_class.at()].contains(row.engine))
      return illegal(fmt::format("class {} may not use {}, yet has a weight there",
                                 policy_.at(row.request_class).name, name));
    return std::nullopt;
  }

  const schema::RoutingSnapshot& snapshot_;
  const policy::CompiledPolicy& policy_;
  const schema::FleetTable& table_;
  std::vector<EngineSet> allowed_;
};

}  // namespace

std::optional<Refusal> check_snapshot(const schema::RoutingSnapshot& snapshot,
                                      const policy::CompiledPolicy& policy, const schema::FleetTable& table,
                                      const ClusterName& cluster) {
  if (snapshot.cluster != cluster)
    return Refusal{ReceiptReason::wrong_cluster,
                   fmt::format("it is for cluster {}, this router serves {}", snapshot.cluster, cluster)};
  if (snapshot.policy != policy.hash)
    return Refusal{ReceiptReason::wrong_policy, fmt::format("it obeys policy {}, in force is {}",
                                                            snapshot.policy.brief(), policy.hash.brief())};
  if (snapshot.table != table.content)
    return Refusal{ReceiptReason::wrong_table, fmt::format("its rows index fleet table {}, known is {}",
                                                           snapshot.table.brief(), table.content.brief())};
  return SnapshotCheck(snapshot, policy, table).run();
}

}  // namespace signalbox::routing
