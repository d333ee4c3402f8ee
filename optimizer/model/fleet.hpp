// From what is known of a fleet to a Problem: work, unloaded latency, ceilings, and the linear cost of every
// allowed pair.
#pragma once

#include <vector>

#include "optimizer/model/plan.hpp"
#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// One engine as the optimizer knows it now.
struct EngineState {
  StepTime step;
  double kv_tokens = 0;  ///< KV cache; 0: unknown, not a limit
  double max_batch = 0;  ///< sequences decoded together; 0: unknown, not a limit
  double availability =
      1;  ///< part of the capacity that may be planned: 0 gone or draining, below 1 degraded or starting
};

/// Demand of one class in one cluster.
struct TrafficState {
  ClusterIndex cluster;
  ClassIndex service_class;
  double demand_per_s = 0;
  RequestShape shape;
  double shed_cost_s = 0;
  double floor_fraction = 0;
  double floor_shed_cost_s = 0;
  LatencyWeights weigh{};  ///< multiply the objective's for this class
};

/// An allowed (source, engine). All costs in seconds of latency per request.
struct Route {
  SourceIndex source;  ///< row of FleetState::traffic
  EngineIndex engine;
  double network_s = 0;  ///< round trip from the cluster to the engine
  double egress_s =
      0;  ///< cost of leaving the region, before its weight: megabytes of a request and its answer
  double cache_value_s = 0;  ///< what the engine's cache saves a request of this source; subtracted
  double reference_per_s =
      0;  ///< requests/s here in the last plan, scaled to the new demand; 0 if the engine is to be left
};

/// Weights of the objective's parts; a zero switches a part off.
struct ObjectiveWeights {
  LatencyWeights latency;
  double network = 1.0;
  double egress = 1.0;
  double cache = 1.0;
  double churn_cost_s = 0.03;  ///< cost of moving one request/s between engines
};

/// What the solve may load an engine with.
struct LoadLimits {
  double load_ceiling = 0.85;  ///< share of the (available) capacity; in (0, 1)
  double kv_fill = 0.95;       ///< share of the KV cache that planned requests may hold
};

struct FleetState {
  std::vector<EngineState> engines;   ///< in the fleet table's order
  std::vector<TrafficState> traffic;  ///< ascending (cluster, class)
  std::vector<Route> routes;          ///< ascending (source, engine)
  ObjectiveWeights objective;
  LoadLimits limits;
  std::vector<ShareCap> caps;  ///< as Problem::caps
};

/// What a second of each latency counts for this traffic.
inline LatencyWeights latency_weights(const FleetState& fleet, const TrafficState& traffic) {
  const LatencyWeights& all = fleet.objective.latency;
  return {all.ttft * traffic.weigh.ttft, all.tpot * traffic.weigh.tpot};
}

/// The linear cost of a pair by part, in seconds per request, already weighted; their sum is Pair::cost_s.
struct PairParts {
  double network_s = 0;
  double egress_s = 0;
  double cache_s = 0;  ///< <= 0
  /// Unloaded latency less what the engine's congestion curve charges at zero load (q * work): so the
  /// unloaded latency is exact for every class.
  double service_s = 0;
};

/// What sets an engine's ceiling: the policy's load ceiling, its batch, its KV memory, or that it is out of service.
enum class CeilingReason : std::uint8_t { load, batch, kv_memory, out_of_service };

struct BuiltProblem {
  Problem problem;
  std::vector<PairParts> parts;         ///< by PairIndex
  std::vector<CeilingReason> ceilings;  ///< by EngineIndex
};

/// Routes to engines without availability are left out. Errors name the row and the number.
Result<BuiltProblem> build_problem(const FleetState& fleet);

/// The whole objective by named parts, in seconds of latency per second; they sum to the certificate's
/// objective.
struct ObjectiveParts {
  double network = 0, egress = 0, cache = 0, service = 0, congestion = 0, churn = 0, shed = 0;
};
ObjectiveParts objective_parts(const BuiltProblem& built, const Plan& plan);

/// Expected latency parts of one request of this shape on an engine at this load, in seconds.
struct ExpectedLatency {
  double ttft_s = 0;  ///< prefill and one step, stretched by the load; without network
  double tpot_s = 0;  ///< time per output token
};
ExpectedLatency expected_latency(const StepTime& step, const RequestShape& shape, double load,
                                 double capacity);

}  // namespace signalbox::optimizer
