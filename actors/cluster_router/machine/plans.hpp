// Which policy, fleet table and snapshot a router routes by. The three belong together: a snapshot's rows index the
// classes of one policy and the engines of one table, so they change in one step.
//
// A new policy or table waits for the first snapshot that refers to it, at most `patience`; then the router goes on
// without a plan under the new ones, because what the policy forbids is forbidden now.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "actors/cluster_router/routing/view.hpp"
#include "actors/kit/fleet/table.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::cluster_router {

using SnapshotPtr = std::shared_ptr<const schema::RoutingSnapshot>;

/// What a router made of a snapshot.
struct Judgement {
  schema::ReceiptReason reason = schema::ReceiptReason::accepted;
  std::string detail;
  bool repeated = false;  ///< the one in force again: nothing to say
};

class Plans {
 public:
  static constexpr Duration patience = 5s;

  Plans(ClusterName cluster, std::uint64_t epoch, kit::TablePtr table);

  /// True if it is new.
  bool take_policy(kit::PolicyPtr policy, Instant now);
  bool take_table(kit::TablePtr table, Instant now);
  /// `as_of`: the time of the facts that it was planned from.
  Judgement take_snapshot(SnapshotPtr snapshot, Instant as_of, Instant now);
  /// Takes a snapshot that waited for its policy or table, or ends their waiting. The judgement if a snapshot was taken.
  std::optional<Judgement> settle(Instant now);
  /// When settle() must be called at the latest.
  Instant due() const;

  const kit::PolicyPtr& policy() const { return policy_; }  ///< null: none yet
  const kit::TablePtr& table() const { return table_; }
  const SnapshotPtr& snapshot() const {
    return snapshot_;
  }  ///< null: none, or none under the policy in force
  Instant as_of() const { return as_of_; }
  const SnapshotVersion& version() const { return version_; }  ///< the highest one taken, ever
  bool waits() const { return next_policy_ || next_table_; }

 private:
  struct Waiting {
    SnapshotPtr snapshot;
    Instant as_of;
  };
  kit::PolicyPtr policy_by(const Digest& hash) const;
  kit::TablePtr table_by(const Digest& content) const;

  ClusterName cluster_;
  std::uint64_t epoch_;
  kit::PolicyPtr policy_, next_policy_;
  kit::TablePtr table_, next_table_;
  Instant next_since_ = end_of_time;
  SnapshotPtr snapshot_;
  Instant as_of_ = never_yet;
  SnapshotVersion version_;
  std::optional<Waiting> waiting_;  ///< the newest one that refers to a policy or table not known yet
};

}  // namespace signalbox::cluster_router
