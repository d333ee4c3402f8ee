#include "optimizer/solve/smooth_dual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace signalbox::optimizer {
namespace {

/// Terms below e^-cut of the largest are left out of a softmin.
constexpr double cut = 18.0;

/// -t * log(e^(-a/t) + e^(-b/t)) and the share of a in it.
struct Soft {
  double value, share;
};
Soft softmin(double a, double b, double temperature) {
  const double gap = (b - a) / temperature;
  if (gap > 40.0) return {a, 1.0};
  if (gap < -40.0) return {b, 0.0};
  if (gap > 0.0) {
    const double e = std::exp(-gap);
    return {a - temperature * std::log1p(e), 1.0 / (1.0 + e)};
  }
  const double e = std::exp(gap);
  return {b - temperature * std::log1p(e), e / (1.0 + e)};
}

}  // namespace

SmoothDual::SmoothDual(const Problem& problem, const ColumnView& columns,
                       const std::vector<double>& temperature_s)
    : problem_(problem), columns_(columns), temperature_(temperature_s) {
  std::size_t longest = 0;
  for (std::size_t s = 0; s < problem.sources.size(); ++s)
    longest = std::max<std::size_t>(longest, columns.begin[s + 1] - columns.begin[s]);
  cost_.resize(longest);
}

double SmoothDual::price_row(std::size_t s, const std::vector<double>& price) {
  const std::uint32_t first = columns_.begin[s], last = columns_.begin[s + 1];
  double cheapest = std::numeric_limits<double>::infinity();
  for (std::uint32_t k = first; k < last; ++k) {
    const Pair& pair = columns_.pairs[k];
    const double c = pair.cost_s + pair.work_s * price[pair.engine.value];
    cost_[k - first] = c;
    cheapest = std::min(cheapest, c);
  }
  return cheapest;
}

double SmoothDual::evaluate_row(std::size_t s, const std::vector<double>& price, std::vector<double>& work) {
  const Source& source = problem_.sources[s];
  const double cheapest = price_row(s, price);
  const double t = temperature_[s], demand = source.demand_per_s;
  row_.near.clear();
  row_.stayed.clear();
  row_.through_per_s = 0.0;
  row_.shed_per_s = demand;
  const double guarded = demand * source.floor_fraction;
  double free = demand - guarded;
  if (!std::isfinite(cheapest)) return free * source.shed_cost_s + guarded * source.floor_shed_cost_s;
  const std::uint32_t first = columns_.begin[s];
  const std::uint32_t count = columns_.begin[s + 1] - first;
  double weights = 0.0;
  const double limit = cheapest + cut * t, inverse_t = 1.0 / t;
  for (std::uint32_t k = 0; k < count; ++k) {
    if (cost_[k] > limit) continue;
    const double e = std::exp((cheapest - cost_[k]) * inverse_t);
    weights += e;
    row_.near.push_back({first + k, e});
  }
  const double column_cost = cheapest - t * std::log(weights);
  const Soft open = softmin(column_cost, source.shed_cost_s, t);
  double value = 0.0;
  if (!columns_.reference_per_s.empty()) value += references(first, count, open.value, t, work, free);
  value += free * open.value;
  row_.through_per_s = free * open.share;
  row_.shed_per_s = free * (1.0 - open.share);
  if (guarded > 0.0) {
    const Soft floor = softmin(column_cost, source.floor_shed_cost_s, t);
    value += guarded * floor.value;
    row_.through_per_s += guarded * floor.share;
    row_.shed_per_s += guarded * (1.0 - floor.share);
  }
  const double scale = row_.through_per_s / weights;
  for (Near& near : row_.near) {
    near.flow_per_s *= scale;
    const Pair& pair = columns_.pairs[near.column];
    work[pair.engine.value] += pair.work_s * near.flow_per_s;
  }
  return value;
}

double SmoothDual::references(std::uint32_t first, std::uint32_t count, double alternative, double t,
                              std::vector<double>& work, double& free) {
  double sum = 0.0, value = 0.0, moved = 0.0;
  for (std::uint32_t k = 0; k < count; ++k) sum += columns_.reference_per_s[first + k];
  if (sum <= 0.0) return 0.0;
  const double scale = std::min(1.0, free / sum);
  for (std::uint32_t k = 0; k < count; ++k) {
    const double rate = scale * columns_.reference_per_s[first + k];
    if (rate <= 0.0 || !std::isfinite(cost_[k])) continue;
    const Soft stay = softmin(cost_[k], alternative + problem_.churn_cost_s, t);
    value += rate * (stay.value - (1.0 - stay.share) * alternative);
    moved += rate * (1.0 - stay.share);
    free -= rate;
    const Pair& pair = columns_.pairs[first + k];
    work[pair.engine.value] += pair.work_s * rate * stay.share;
    row_.stayed.push_back({first + k, rate * stay.share});
  }
  free += moved;
  return value;
}

}  // namespace signalbox::optimizer
