#include "optimizer/model/plan.hpp"

#include <algorithm>

namespace signalbox::optimizer {

std::string_view to_string(ObjectiveTerm term) {
  switch (term) {
    case ObjectiveTerm::pairs: return "pairs";
    case ObjectiveTerm::congestion: return "congestion";
    case ObjectiveTerm::churn: return "churn";
    case ObjectiveTerm::shed: return "shed";
  }
  return "unknown";
}

std::string_view explain(ObjectiveTerm term) {
  switch (term) {
    case ObjectiveTerm::pairs: return "network, egress, cache value and unloaded service of the pairs used";
    case ObjectiveTerm::congestion: return "latency that load causes on the engines";
    case ObjectiveTerm::churn: return "requests moved away from where the last plan sent them";
    case ObjectiveTerm::shed: return "requests refused";
  }
  return "unknown";
}

std::string_view to_string(Limit limit) {
  switch (limit) {
    case Limit::engine_ceiling: return "engine_ceiling";
    case Limit::shed: return "shed";
    case Limit::floor: return "floor";
  }
  return "unknown";
}

std::string_view explain(Limit limit) {
  switch (limit) {
    case Limit::engine_ceiling: return "the engine is planned at the greatest load that it may have";
    case Limit::shed: return "part of the source's demand is refused";
    case Limit::floor: return "even part of the share that the source's floor protects is refused";
  }
  return "unknown";
}

std::string_view to_string(Stop stop) {
  switch (stop) {
    case Stop::certified: return "certified";
    case Stop::iterations: return "iterations";
    case Stop::stalled: return "stalled";
  }
  return "unknown";
}

std::string_view explain(Stop stop) {
  switch (stop) {
    case Stop::certified: return "the certified gap reached its target";
    case Stop::iterations: return "the iteration limit was reached first";
    case Stop::stalled: return "neither the plan nor the bound improved any more";
  }
  return "unknown";
}

std::vector<double> loads_of(const Problem& problem, std::span<const double> flow_per_s) {
  std::vector<double> load(problem.engines.size(), 0.0);
  for (std::size_t i = 0; i < problem.pairs.size(); ++i)
    load[problem.pairs[i].engine.at()] += problem.pairs[i].work_s * flow_per_s[i];
  return load;
}

std::array<double, term_count> objective_terms(const Problem& problem, std::span<const double> flow_per_s,
                                               std::span<const double> shed_per_s,
                                               std::span<const double> load) {
  std::array<double, term_count> terms{};
  const auto at = [&](ObjectiveTerm term) -> double& { return terms[static_cast<std::size_t>(term)]; };
  for (std::size_t i = 0; i < problem.pairs.size(); ++i) {
    at(ObjectiveTerm::pairs) += problem.pairs[i].cost_s * flow_per_s[i];
    if (!problem.reference_per_s.empty())
      at(ObjectiveTerm::churn) +=
          problem.churn_cost_s * std::max(0.0, problem.reference_per_s[i] - flow_per_s[i]);
  }
  for (std::size_t e = 0; e < problem.engines.size(); ++e)
    if (load[e] > 0.0) at(ObjectiveTerm::congestion) += problem.engines[e].curve.cost(load[e]);
  at(ObjectiveTerm::shed) = refused_cost(problem, shed_per_s);
  return terms;
}

double refused_cost(const Problem& problem, std::span<const double> shed_per_s) {
  double sum = 0;
  for (std::size_t s = 0; s < problem.sources.size(); ++s) {
    const Source& source = problem.sources[s];
    const double open = source.demand_per_s * (1.0 - source.floor_fraction);
    sum += source.shed_cost_s * std::min(shed_per_s[s], open) +
           source.floor_shed_cost_s * std::max(0.0, shed_per_s[s] - open);
  }
  return sum;
}

double admit_fraction(const Problem& problem, const Plan& plan, SourceIndex source) {
  const double demand = problem.sources[source.at()].demand_per_s;
  if (demand <= 0.0) return 1.0;
  return std::clamp(1.0 - plan.shed_per_s[source.at()] / demand, 0.0, 1.0);
}

double weight(const Problem& problem, const Plan& plan, SourceIndex source, PairIndex pair) {
  const Source& s = problem.sources[source.at()];
  double admitted = 0;
  for (std::size_t i = s.first_pair; i < s.first_pair + s.pair_count; ++i) admitted += plan.flow_per_s[i];
  return admitted > 0.0 ? plan.flow_per_s[pair.at()] / admitted : 0.0;
}

double reduced_cost_s(const Problem& problem, const Plan& plan, SourceIndex source, PairIndex pair) {
  const Pair& p = problem.pairs[pair.at()];
  return std::max(0.0, p.cost_s + p.work_s * plan.price[p.engine.at()] - plan.source_price_s[source.at()]);
}

std::optional<double> less_loaded(const Problem& problem, const Plan& plan, SourceIndex source,
                                  PairIndex pair) {
  if (reduced_cost_s(problem, plan, source, pair) <= 0.0) return 0.0;
  const Pair& p = problem.pairs[pair.at()];
  const CongestionCurve& curve = problem.engines[p.engine.at()].curve;
  const double affordable = (plan.source_price_s[source.at()] - p.cost_s) / p.work_s;
  const double load = plan.load[p.engine.at()];
  if (affordable <= curve.q || load <= 0.0) return std::nullopt;
  return std::max(0.0, 1.0 - curve.load_at(affordable) / load);
}

}  // namespace signalbox::optimizer
