// The last look at a plan before it is signed: does it keep the policy, by arithmetic of its own? Shares no code with the solver, so that a
// defect there cannot excuse itself here. Caps, spread and survival are asked for
// as far as the engines that are left can hold them (limits.hpp).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cluster-config/policy/compiled.hpp"
#include "messages/schema/fleet_table.hpp"
#include "messages/schema/health.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::verify {

/// What is wrong with a plan.
enum class Fault : std::uint8_t {
  not_finite,       ///< a number is not finite or out of its range
  unknown_row,      ///< a row names a class, engine or cluster that does not exist
  disorder,         ///< rows are not ascending, or one comes twice
  wrong_policy,     ///< made for another policy
  wrong_table,      ///< made for another fleet table
  sum,              ///< a class's weights do not sum to 1
  uncovered,        ///< a class is admitted, offered, and has no weights
  not_allowed,      ///< the policy forbids the engine to the class
  wrong_model,      ///< the engine does not serve the class's model
  out_of_service,   ///< the engine is gone or draining
  over_ceiling,     ///< an engine is planned above what it may carry
  shed_order,       ///< a class is refused while a lesser one uses what it could use
  floor,            ///< a class is admitted below its floor while its engines have room
  coverage,         ///< the plan rests on too small a part of the fleet
  missing_cluster,  ///< a cluster has no snapshot, or two
  weight_cap,       ///< an engine or a domain gets more of a class than its cap
  spread,           ///< a class is served by fewer engines or racks than the policy asks for
  survival,         ///< the loss of a domain would leave too little for critical classes
  cache_memory,     ///< hot prefix groups hold more of an engine's memory than they may
  churn,            ///< more of a row's weights moves than may
};

struct Violation {
  Fault fault = Fault::not_finite;
  std::string text;  ///< which cluster, class and engine, with the numbers
};

/// One engine as the plan took it: the monitor's word, and its service curve as measured or declared.
struct Standing {
  HealthState state = HealthState::ready;
  double capacity_factor = 1.0;  ///< share of the capacity that may be planned
  double per_sequence_s = 0.0, per_context_token_s = 0.0, per_prefill_token_s = 0.0;
  double kv_tokens = 0.0;  ///< KV memory; 0: unknown
};

/// One row in force, and how much of it may move: the sum over engines of what each gains or loses.
struct Before {
  ClusterName cluster;
  ClassIndex of;
  double may_move = 0.0;
  std::map<EngineIndex, double> weights;
};

/// Everything that a plan is judged by.
struct Judged {
  const policy::CompiledPolicy& policy;
  const schema::FleetTable& table;
  std::span<const schema::RoutingSnapshot>
      snapshots;                        ///< one for each cluster of the table: together they load the engines
  std::span<const Standing> standings;  ///< by EngineIndex
  double heard_share = 1.0;             ///< share of the engines that the leader hears
  std::span<const Before> before{};     ///< rows whose churn is limited
};

/// All that is wrong, by cluster, class and engine; empty: the plan may be published. At most 100.
std::vector<Violation> verify(const Judged& judged);

}  // namespace signalbox::verify

template <>
struct signalbox::EnumTable<signalbox::verify::Fault> {
  static constexpr std::array rows{
      EnumRow{"not_finite", "a number is not finite or out of its range"},
      EnumRow{"unknown_row", "a row names a class, engine or cluster that does not exist"},
      EnumRow{"disorder", "rows are not ascending, or one comes twice"},
      EnumRow{"wrong_policy", "the plan was made for another policy"},
      EnumRow{"wrong_table", "the plan was made for another fleet table"},
      EnumRow{"sum", "the weights of a class do not sum to 1"},
      EnumRow{"uncovered", "a class is admitted and offered, and has no weights"},
      EnumRow{"not_allowed", "the policy forbids the engine to the class"},
      EnumRow{"wrong_model", "the engine does not serve the model of the class"},
      EnumRow{"out_of_service", "the engine is gone or draining"},
      EnumRow{"over_ceiling", "an engine is planned above what it may carry"},
      EnumRow{"shed_order", "a class is refused while a lesser one uses engines that it could use"},
      EnumRow{"floor", "a class is admitted below its floor while its engines have room"},
      EnumRow{"coverage", "the plan rests on too small a part of the fleet"},
      EnumRow{"missing_cluster", "a cluster has no snapshot, or two"},
      EnumRow{"weight_cap", "an engine or a failure domain gets more of a class than the policy's cap"},
      EnumRow{"spread", "a class is served by fewer engines or racks than the policy asks for"},
      EnumRow{"survival", "the loss of a failure domain would leave too little for critical classes"},
      EnumRow{"cache_memory", "hot prefix groups hold more of an engine's memory than the policy allows"},
      EnumRow{"churn", "more of a class's weights moves than the policy allows"},
  };
};
