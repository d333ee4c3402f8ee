#include "actors/global_optimizer/machine/restate.hpp"

#include "actors/global_optimizer/machine/limit_prices.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::global_optimizer {

namespace {

/// The flows of one source; what of its demand they do not serve is refused.
void put_flows(const schema::RoutingSnapshot& snapshot, const optimizer::Problem& problem, std::size_t s,
               optimizer::Plan& plan) {
  const optimizer::Source& source = problem.sources[s];
  const auto admit =
      std::ranges::find(snapshot.admits, source.service_class, &schema::AdmitRow::request_class);
  const double rate = admit == snapshot.admits.end() ? 0 : admit->planned_rps * admit->admit;
  const auto [from, to] =
      std::ranges::equal_range(snapshot.weights, source.service_class, {}, &schema::WeightRow::request_class);
  auto row = from;
  double served = 0;
  for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
    while (row != to && row->engine < problem.pairs[i].engine) ++row;
    const bool used = row != to && row->engine == problem.pairs[i].engine;
    served += plan.flow_per_s[i] = used ? std::min(rate, source.demand_per_s) * row->weight : 0;
  }
  plan.shed_per_s[s] = std::max(0.0, source.demand_per_s - served);
  if (plan.shed_per_s[s] < 1e-9 * source.demand_per_s) plan.shed_per_s[s] = 0;
}

schema::CostRow cost(schema::CostPart part, const optimizer::ObjectiveParts& parts) {
  using enum schema::CostPart;
  switch (part) {
    case network: return {part, parts.network};
    case egress: return {part, parts.egress};
    case cache: return {part, parts.cache};
    case service: return {part, parts.service};
    case congestion: return {part, parts.congestion};
    case churn: return {part, parts.churn};
    default: return {part, parts.shed};
  }
}

}  // namespace

optimizer::Plan published_plan(const std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
                               const optimizer::BuiltProblem& built, const optimizer::Plan& solved) {
  optimizer::Plan out = solved;
  const optimizer::Problem& problem = built.problem;
  for (std::size_t s = 0; s < problem.sources.size(); ++s)
    put_flows(snapshots[facts.fleet.traffic[s].cluster.at()], problem, s, out);
  out.load = optimizer::loads_of(problem, out.flow_per_s);
  out.terms = optimizer::objective_terms(problem, out.flow_per_s, out.shed_per_s, out.load);
  optimizer::Certificate& certificate = out.certificate;
  certificate.objective = 0;
  for (const double term : out.terms) certificate.objective += term;
  certificate.relative_gap =
      (certificate.objective - certificate.lower_bound) / std::max(std::abs(certificate.lower_bound), 1e-9);
  return out;
}

void restate(std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
             const optimizer::BuiltProblem& built, const optimizer::Plan& solved) {
  const optimizer::Plan plan = published_plan(snapshots, facts, built, solved);
  const optimizer::ObjectiveParts parts = optimizer::objective_parts(built, plan);
  for (auto& snapshot : snapshots) {
    snapshot.objective = plan.certificate.objective;
    snapshot.gap = std::clamp(plan.certificate.relative_gap, 0.0, 1e9);  // an optimum's is rounding
    snapshot.costs.clear();
    for (std::size_t part = 0; part < enum_size<schema::CostPart>; ++part)
      snapshot.costs.push_back(cost(static_cast<schema::CostPart>(part), parts));
    for (schema::PriceRow& row : snapshot.prices) row.planned_load = plan.load[row.engine.at()];
  }
  price_limits(snapshots, facts, built, plan);
}

}  // namespace signalbox::global_optimizer
