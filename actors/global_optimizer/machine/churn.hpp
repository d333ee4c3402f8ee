// The policy's limit on churn: how much of a row's weights may move at a time, and in any window of time.
//
// With r the weights in force, less those of engines that may serve no more, as shares of their sum, and w the next ones, a row moves
//
//     sum over engines  |w_e - r_e|
//
// A row that would move more than it may goes a part of the way, r + t (w - r), which keeps whatever limits both ends keep, but for
// survival. Nobody is refused for it: where going only a part of the way would overload an engine, or break a cap, spread or survival, the
// row moves all the way, and the alert limit-not-held says so.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// What has moved of each row of late.
class ChurnBook {
 public:
  /// `after` replaces `before`, which is the same cluster's. Under another policy or table rows mean something else: nothing moved.
  void note(const schema::RoutingSnapshot& before, const schema::RoutingSnapshot& after,
            const policy::Churn& limit, Instant now);
  /// Sets Facts::may_move.
  void fill(Facts& facts, Instant now) const;
  void clear() { moves_.clear(); }

 private:
  struct Move {
    Instant at;
    double sum = 0;
  };
  std::map<std::pair<ClusterName, ClassIndex>, std::deque<Move>> moves_;
};

/// Shortens what moves too much. `plan`: all clusters, in the table's order.
void hold_churn(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts);

}  // namespace signalbox::global_optimizer
