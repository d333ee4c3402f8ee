#include "optimizer/solve/bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace signalbox::optimizer {

RowValue row_value(const Source& source, double cheapest, double churn_paid, std::vector<Segment>& kept) {
  const double last_resort = source.floor_fraction > 0.0 ? source.floor_shed_cost_s : source.shed_cost_s;
  const double rest = std::min(cheapest, last_resort);
  if (source.shed_cost_s < rest)
    kept.push_back({source.shed_cost_s, source.demand_per_s * (1.0 - source.floor_fraction)});
  std::erase_if(kept, [&](const Segment& s) { return s.cost >= rest; });
  double left = source.demand_per_s, cost = churn_paid, rate = 0.0;
  for (const Segment& s : kept) rate += s.rate;
  if (rate > left)
    std::sort(kept.begin(), kept.end(), [](const Segment& a, const Segment& b) { return a.cost < b.cost; });
  for (const Segment& s : kept) {
    const double taken = std::min(left, s.rate);
    cost += taken * s.cost;
    left -= taken;
    if (left <= 0.0 && s.rate > taken) return {cost, s.cost, rest};
  }
  return {cost + left * rest, rest, rest};
}

double engines_conjugate(const Problem& problem, const std::vector<double>& price) {
  double sum = 0.0;
  for (std::size_t e = 0; e < problem.engines.size(); ++e)
    if (problem.engines[e].curve.ceiling > 0.0) sum += problem.engines[e].curve.conjugate(price[e]);
  return sum;
}

RowValue Bound::row(const Source& source, const std::vector<double>& price) {
  double cheapest = std::numeric_limits<double>::infinity();
  for (const Pair& pair : problem_.pairs_of(source))
    cheapest = std::min(cheapest, pair.cost_s + pair.work_s * price[pair.engine.at()]);
  kept_.clear();
  double churn_paid = 0.0;
  if (problem_.churn_cost_s > 0.0 && !problem_.reference_per_s.empty()) {
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const double rate = problem_.reference_per_s[i];
      if (rate <= 0.0) continue;
      const Pair& pair = problem_.pairs[i];
      kept_.push_back({pair.cost_s + pair.work_s * price[pair.engine.at()] - problem_.churn_cost_s, rate});
      churn_paid += rate * problem_.churn_cost_s;
    }
  }
  return row_value(source, cheapest, churn_paid, kept_);
}

double Bound::value(const std::vector<double>& price) {
  double sum = -engines_conjugate(problem_, price);
  for (std::size_t s = 0; s < problem_.sources.size(); ++s)
    if (problem_.sources[s].demand_per_s > 0.0)
      sum += capped_.binds(s) ? capped_.value(s, price).cost : row(problem_.sources[s], price).cost;
  return sum;
}

std::vector<double> Bound::source_prices(const std::vector<double>& price) {
  std::vector<double> out;
  out.reserve(problem_.sources.size());
  for (std::size_t s = 0; s < problem_.sources.size(); ++s)
    out.push_back(capped_.binds(s) && problem_.sources[s].demand_per_s > 0.0
                      ? capped_.value(s, price).last
                      : row(problem_.sources[s], price).next_request);
  return out;
}

std::vector<double> Bound::source_scales(const std::vector<double>& price) {
  std::vector<double> out;
  out.reserve(problem_.sources.size());
  for (const Source& source : problem_.sources)
    out.push_back(std::max(std::abs(row(source, price).last_request), 1e-6));
  return out;
}

}  // namespace signalbox::optimizer
