// From what is known now to one solve: the fleet's state, the problem, and what the plan will be explained with.
#pragma once

#include <map>
#include <vector>

#include "actors/global_optimizer/machine/demand.hpp"
#include "actors/kit/fleet/picture.hpp"
#include "optimizer/model/fleet.hpp"

namespace signalbox::global_optimizer {

/// What of the demand a plan is for: what it will hardly exceed; where there is no room for that, what is expected; else what
/// is asked for beyond doubt, since nobody should be refused for the doubt.
enum class PlannedFor : std::uint8_t { most, expected, sure };

/// Everything that a plan was made from.
struct Facts {
  kit::TablePtr table;
  kit::PolicyPtr policy;
  Instant as_of;
  optimizer::FleetState fleet;     ///< traffic: every (cluster, class) that some engine may serve
  std::vector<Expected> expected;  ///< beside fleet.traffic
  std::vector<double>
      in_force;  ///< beside fleet.routes: the share that the weights in force give it; may be 0
  std::vector<double>
      may_move;  ///< beside fleet.traffic: what the policy's churn leaves each row; empty: all
  std::vector<HealthState> health;                ///< by EngineIndex; `ready` where no monitor has spoken
  std::vector<std::vector<EngineIndex>> allowed;  ///< by ClassIndex
  std::vector<schema::CoverRow> covers;
  PlannedFor planned_for = PlannedFor::most;
};

/// The weights in force in one cluster: (class, engine) to share.
using WeightMap = std::map<std::pair<ClassIndex, EngineIndex>, double>;

/// `in_force`: by cluster, the weights that churn is measured from; may lack clusters. For `what`, as plan_for().
Facts gather(const kit::TablePtr& table, const kit::PolicyPtr& policy, const kit::Picture& picture,
             const DemandBook& demand, const std::map<ClusterName, WeightMap>& in_force, Instant now,
             PlannedFor what = PlannedFor::most);

/// The policy's caps on weights, from engines outwards, as a problem may hold them.
std::vector<optimizer::ShareCap> caps_of(const schema::FleetTable& table, const policy::Limits& limits);

/// Sets the demand, and what moving away from the weights in force is measured by.
void plan_for(PlannedFor what, Facts& facts);
/// True if the plan refuses requests of which another plan, for less, might find room for more.
bool refuses(const optimizer::Problem& problem, const optimizer::Plan& plan);

/// What changed from one gathering to the next, in words and numbers, for the snapshot's `cause`. `kept`: all weights are
/// those that were in force.
std::string cause_of(const Facts* before, const Facts& now, bool kept);

}  // namespace signalbox::global_optimizer
