// Hot prefix groups in a plan: what routers report of them, as a placement problem beside the plan, and its answer as rows of the
// snapshots. The plan's weights are of all requests of a class; the rows say where those of a group are better off.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"
#include "optimizer/model/plan.hpp"

namespace signalbox::global_optimizer {

class Placer {
 public:
  static constexpr std::size_t most_groups = 16;  ///< those that save most
  static constexpr std::size_t most_options =
      8;  ///< engines looked at for a group in a cluster: the cheapest, and those that hold it
  static constexpr double least_gain = 0.01;  ///< of what the groups cost: else nothing changes

  /// Adds the rows of all groups to the clusters' snapshots, which are in the table's order. Nothing without groups.
  void add_groups(const Facts& facts, const optimizer::BuiltProblem& built, const optimizer::Plan& plan,
                  const DemandBook& demand, Instant now, std::vector<schema::RoutingSnapshot>& snapshots);
  /// Rows mean other classes or engines from now on.
  void clear() { holders_.clear(); }

 private:
  std::map<std::pair<ClassIndex, std::uint64_t>, std::vector<EngineIndex>> holders_;  ///< in force
};

}  // namespace signalbox::global_optimizer
