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

}  // namespace signalbox::optimizer
