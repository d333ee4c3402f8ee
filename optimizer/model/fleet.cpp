#include "optimizer/model/fleet.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::optimizer {
namespace {

/// A class without any demand still needs a row with finite prices; it counts this much in its engines' mean
/// request.
constexpr double idle_rate_per_s = 1e-6;

/// Demand-weighted sums over the sources that an engine may serve: its mean request.
struct Mix {
  double rate = 0, latency_s = 0, plain_latency_s = 0, work_s = 0, held_tokens = 0;
};

Status check_engine(const EngineState& engine, std::size_t row) {
  const StepTime& t = engine.step;
  const auto where = [&] { return fmt::format("engines[{}]", row); };
  for (const double part : {t.a_s, t.b_s, t.k_s, t.c_s, engine.kv_tokens, engine.max_batch})
    if (!(part >= 0.0 && std::isfinite(part)))
      return invalid(fmt::format("a part of its step time or limits is {}", part), where());
  if (!(t.a_s > 0.0) || !(t.b_s + t.k_s + t.c_s > 0.0))
    return invalid("its step time has no fixed or no marginal part", where());
  if (!(t.slowness > 0.0 && std::isfinite(t.slowness)))
    return invalid(fmt::format("slowness is {}", t.slowness), where());
  if (!(engine.availability >= 0.0 && engine.availability <= 1.0))
    return invalid(fmt::format("availability is {}, want 0 to 1", engine.availability), where());
  return {};
}

Status check_route(const FleetState& fleet, std::size_t i) {
  const Route& r = fleet.routes[i];
  const auto where = [&] { return fmt::format("routes[{}]", i); };
  if (r.source.at() >= fleet.traffic.size() || r.engine.at() >= fleet.engines.size())
    return invalid("names no row", where());
  if (i > 0 &&
      std::pair(fleet.routes[i - 1].source, fleet.routes[i - 1].engine) >= std::pair(r.source, r.engine))
    return invalid("is not ascending by (source, engine)", where());
  for (const double part : {r.network_s, r.egress_s, r.cache_value_s, r.reference_per_s})
    if (!std::isfinite(part)) return invalid(fmt::format("a cost or rate is {}", part), where());
  return {};
}

Status check_fleet(const FleetState& fleet) {
  for (std::size_t e = 0; e < fleet.engines.size(); ++e)
    if (auto ok = check_engine(fleet.engines[e], e); !ok) return ok;
  for (std::size_t s = 0; s < fleet.traffic.size(); ++s) {
    const TrafficState& t = fleet.traffic[s];
    for (const double part :
         {t.demand_per_s, t.shape.uncached_prompt_tokens, t.shape.output_tokens, t.shape.context_tokens})
      if (!(part >= 0.0 && std::isfinite(part)))
        return invalid(fmt::format("a rate or token count is {}", part), fmt::format("sources[{}]", s));
  }
  for (std::size_t i = 0; i < fleet.routes.size(); ++i)
    if (auto ok = check_route(fleet, i); !ok) return ok;
  if (!(fleet.limits.load_ceiling > 0.0 && fleet.limits.load_ceiling <= 0.99))
    return invalid(fmt::format("load_ceiling is {}, want above 0 to 0.99", fleet.limits.load_ceiling),
                   "limits");
  return {};
}

std::vector<Mix> engine_mixes(const FleetState& fleet) {
  std::vector<Mix> mixes(fleet.engines.size());
  for (const Route& route : fleet.routes) {
    const TrafficState& traffic = fleet.traffic[route.source.at()];
    const StepTime& step = fleet.engines[route.engine.at()].step;
    const double rate = std::max(traffic.demand_per_s, idle_rate_per_s);
    Mix& mix = mixes[route.engine.at()];
    mix.rate += rate;
    mix.latency_s += rate * unloaded_latency_s(step, traffic.shape, latency_weights(fleet, traffic));
    mix.plain_latency_s += rate * unloaded_latency_s(step, traffic.shape, {});
    mix.work_s += rate * work_s(step, traffic.shape);
    mix.held_tokens += rate * traffic.shape.context_tokens;
  }
  return mixes;
}

CongestionCurve curve_of(const EngineState& engine, const Mix& mix, const LoadLimits& limits,
                         CeilingReason& reason) {
  reason = CeilingReason::out_of_service;
  if (engine.availability <= 0.0 || mix.work_s <= 0.0) return {1.0, 1.0, 0.0};
  reason = CeilingReason::load;
  CongestionCurve curve;
  curve.q = std::max(mix.latency_s / mix.work_s, 1e-9);
  curve.capacity = engine.availability;
  curve.ceiling = limits.load_ceiling * engine.availability;
  const auto cap_in_flight = [&](double in_flight, CeilingReason why) {
    const double load = load_at_in_flight(in_flight, mix.plain_latency_s, mix.work_s, curve.capacity);
    if (load < curve.ceiling) curve.ceiling = load, reason = why;
  };
  if (engine.max_batch > 0.0) cap_in_flight(engine.max_batch, CeilingReason::batch);
  if (engine.kv_tokens > 0.0 && mix.held_tokens > 0.0)
    cap_in_flight(limits.kv_fill * engine.kv_tokens * mix.rate / mix.held_tokens, CeilingReason::kv_memory);
  return curve;
}

}  // namespace

Result<BuiltProblem> build_problem(const FleetState& fleet) {
  if (auto ok = check_fleet(fleet); !ok) return tl::unexpected(ok.error());
  BuiltProblem built;
  Problem& problem = built.problem;
  const auto mixes = engine_mixes(fleet);
  built.ceilings.resize(fleet.engines.size());
  for (std::size_t e = 0; e < fleet.engines.size(); ++e)
    problem.engines.push_back({curve_of(fleet.engines[e], mixes[e], fleet.limits, built.ceilings[e])});
  problem.churn_cost_s = fleet.objective.churn_cost_s;
  problem.caps = fleet.caps;
  std::size_t next = 0;
  for (std::size_t s = 0; s < fleet.traffic.size(); ++s) {
    const TrafficState& t = fleet.traffic[s];
    Source source{
        t.cluster, t.service_class, t.demand_per_s, t.shed_cost_s, t.floor_fraction, t.floor_shed_cost_s, 0,
        0};
    source.first_pair = static_cast<std::uint32_t>(problem.pairs.size());
    for (; next < fleet.routes.size() && fleet.routes[next].source == SourceIndex(s); ++next) {
      const Route& route = fleet.routes[next];
      const EngineState& engine = fleet.engines[route.engine.at()];
      const CongestionCurve& curve = problem.engines[route.engine.at()].curve;
      if (curve.ceiling <= 0.0) continue;
      const double work = std::max(work_s(engine.step, t.shape), 1e-9);
      const auto& weights = fleet.objective;
      const PairParts parts{
          weights.network * route.network_s, weights.egress * route.egress_s,
          -weights.cache * route.cache_value_s,
          unloaded_latency_s(engine.step, t.shape, latency_weights(fleet, t)) - curve.q * work};
      problem.pairs.push_back(
          {route.engine, parts.network_s + parts.egress_s + parts.cache_s + parts.service_s, work});
      problem.reference_per_s.push_back(route.reference_per_s);
      built.parts.push_back(parts);
    }
    source.pair_count = static_cast<std::uint32_t>(problem.pairs.size()) - source.first_pair;
    problem.sources.push_back(source);
  }
  if (auto ok = check(problem); !ok) return tl::unexpected(ok.error());
  return built;
}

ObjectiveParts objective_parts(const BuiltProblem& built, const Plan& plan) {
  ObjectiveParts sum;
  for (std::size_t i = 0; i < built.parts.size(); ++i) {
    const double flow = plan.flow_per_s[i];
    sum.network += flow * built.parts[i].network_s;
    sum.egress += flow * built.parts[i].egress_s;
    sum.cache += flow * built.parts[i].cache_s;
    sum.service += flow * built.parts[i].service_s;
  }
  sum.congestion = plan.terms[static_cast<std::size_t>(ObjectiveTerm::congestion)];
  sum.churn = plan.terms[static_cast<std::size_t>(ObjectiveTerm::churn)];
  sum.shed = plan.terms[static_cast<std::size_t>(ObjectiveTerm::shed)];
  return sum;
}

ExpectedLatency expected_latency(const StepTime& step, const RequestShape& shape, double load,
                                 double capacity) {
  const double idle = std::max(1.0 - load / capacity, 1e-3);
  const double step_s = step.slowness * step.a_s / idle;
  const double prefill_s = step.slowness * step.c_s * shape.uncached_prompt_tokens / idle;
  return {prefill_s + step_s, step_s};
}

}  // namespace signalbox::optimizer
