#include "actors/cluster_router/machine/plans.hpp"

#include <fmt/format.h>

#include "actors/kit/fleet/terms.hpp"

namespace signalbox::cluster_router {

using schema::ReceiptReason;

Plans::Plans(ClusterName cluster, std::uint64_t epoch, kit::TablePtr table)
    : cluster_(std::move(cluster)), epoch_(epoch), table_(std::move(table)) {}

bool Plans::take_policy(kit::PolicyPtr policy, Instant now) {
  if ((policy_ && policy->hash == policy_->hash) || (next_policy_ && policy->hash == next_policy_->hash)) {
    // Back to the one in force: what waited is void.
    if (policy_ && policy->hash == policy_->hash && next_policy_) next_policy_.reset();
    return false;
  }
  if (!snapshot_) {
    policy_ = std::move(policy);
  } else {
    next_policy_ = std::move(policy);
    next_since_ = std::min(next_since_, now);
  }
  return true;
}

bool Plans::take_table(kit::TablePtr table, Instant now) {
  if (table->content == table_->content || (next_table_ && table->content == next_table_->content))
    return false;
  next_table_ = std::move(table);
  next_since_ = std::min(next_since_, now);
  return true;
}

kit::PolicyPtr Plans::policy_by(const Digest& hash) const {
  if (next_policy_ && next_policy_->hash == hash) return next_policy_;
  return policy_ && policy_->hash == hash ? policy_ : nullptr;
}

kit::TablePtr Plans::table_by(const Digest& content) const {
  if (next_table_ && next_table_->content == content) return next_table_;
  return table_->content == content ? table_ : nullptr;
}

Judgement Plans::take_snapshot(SnapshotPtr snapshot, Instant as_of, Instant now) {
  if (snapshot->cluster != cluster_)
    return {ReceiptReason::wrong_cluster, fmt::format("it is for {}", snapshot->cluster)};
  if (snapshot->version == version_ && snapshot_) return {ReceiptReason::accepted, {}, true};
  const std::uint64_t counter = snapshot->version.term.counter;
  if (!kit::is_plausible(counter, version_.term.counter, epoch_))
    return {ReceiptReason::implausible_term,
            fmt::format("term {} after {}, epoch {}", counter, version_.term.counter, epoch_)};
  if (snapshot->version < version_ || (snapshot->version == version_ && snapshot_))
    return {ReceiptReason::older, fmt::format("{} after {}", snapshot->version, version_)};
  const kit::PolicyPtr policy = policy_by(snapshot->policy);
  const kit::TablePtr table = table_by(snapshot->table);
  if (!policy || !table) {
    waiting_ = Waiting{std::move(snapshot), as_of};
    return policy ? Judgement{ReceiptReason::wrong_table, "its fleet table is not known here yet"}
                  : Judgement{ReceiptReason::wrong_policy, "its policy is not known here yet"};
  }
  if (const auto refusal = routing::check_snapshot(*snapshot, *policy, *table, cluster_))
    return {refusal->reason, refusal->detail};
  if (policy == next_policy_) next_policy_.reset();
  if (table == next_table_) next_table_.reset();
  if (waits()) next_since_ = std::min(next_since_, now);
  if (!waits()) next_since_ = end_of_time;
  policy_ = policy;
  table_ = table;
  version_ = snapshot->version;
  snapshot_ = std::move(snapshot);
  as_of_ = as_of;
  waiting_.reset();
  return {};
}

std::optional<Judgement> Plans::settle(Instant now) {
  if (waiting_ && policy_by(waiting_->snapshot->policy) && table_by(waiting_->snapshot->table)) {
    const Waiting ready = *std::exchange(waiting_, std::nullopt);
    return take_snapshot(ready.snapshot, ready.as_of, now);
  }
  if (waits() && now >= next_since_ + patience) {
    if (next_policy_) policy_ = std::exchange(next_policy_, nullptr);
    if (next_table_) table_ = std::exchange(next_table_, nullptr);
    next_since_ = end_of_time;
    snapshot_.reset();
    as_of_ = never_yet;
  }
  return std::nullopt;
}

Instant Plans::due() const { return waits() ? next_since_ + patience : end_of_time; }

}  // namespace signalbox::cluster_router
