#include "optimizer/solve/proximal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace signalbox::optimizer {
namespace {

/// The part of a row's demand that all its columns together, and its refusals, keep in every centre.
constexpr double reserve = 1e-2, refusal_reserve = 1e-5;
/// Flows below this share of the row's demand do not count.
constexpr double negligible = 1e-9;

double logit(double share) {
  const double inside = std::clamp(share, 1e-3, 1.0 - 1e-3);
  return std::log(inside / (1.0 - inside));
}

}  // namespace

Proximal::Proximal(const Problem& problem, double churn_cost) : problem_(problem), churn_cost_(churn_cost) {}

void Proximal::centre(const Columns& columns, const std::vector<double>& shed_per_s) {
  columns_ = &columns;
  const std::size_t rows = problem_.sources.size(), count = columns.pairs.size();
  flow_.assign(count, 0.0);
  cost_.assign(count, 0.0);
  log_centre_.assign(count, 0.0);
  shed_ = shed_per_s;
  work_.assign(problem_.engines.size(), 0.0);
  slope_.assign(rows, 0.0);
  log_refusal_.assign(rows, 0.0);
  level_.resize(rows, std::numeric_limits<double>::quiet_NaN());
  bounded_.clear();
  bounded_begin_.assign(rows + 1, 0);
  pulls_begin_.assign(rows + 1, 0);
  std::size_t longest = 0;
  for (std::size_t s = 0; s < rows; ++s) {
    const Source& source = problem_.sources[s];
    bounded_begin_[s] = static_cast<std::uint32_t>(bounded_.size());
    if (source.demand_per_s <= 0.0) continue;
    const double inverse = 1.0 / source.demand_per_s;
    const std::uint32_t first = columns.begin[s], last = columns.begin[s + 1];
    longest = std::max<std::size_t>(longest, last - first);
    const double share = reserve / std::max<std::uint32_t>(1, last - first);
    for (std::uint32_t k = first; k < last; ++k) {
      double free = columns.flow_per_s[k];
      const double reference =
          churn_cost_ > 0.0 ? std::min(columns.reference_per_s[k], source.demand_per_s) : 0.0;
      if (reference > negligible * source.demand_per_s) {
        const double kept = std::min(free, reference);
        bounded_.push_back({k, reference, logit(kept / reference)});
        free -= kept;
      }
      log_centre_[k] = std::log(free * inverse + share);
    }
    double refused = shed_per_s[s];
    if (source.floor_fraction > 0.0) {
      const double open = source.demand_per_s * (1.0 - source.floor_fraction);
      if (open > negligible * source.demand_per_s) {
        bounded_.push_back({none, open, logit(std::min(refused, open) / open)});
        refused = std::max(0.0, refused - open);
      }
    }
    log_refusal_[s] = std::log(refused * inverse + refusal_reserve);
  }
  bounded_begin_[rows] = static_cast<std::uint32_t>(bounded_.size());
  exponent_.resize(longest);
}

double Proximal::bounded_cost(const Bounded& way, std::size_t s) const {
  return way.column == none ? problem_.sources[s].shed_cost_s : cost_[way.column] - churn_cost_;
}

/// The level at which the unbounded ways, whose sum is demand * exp((level - soft_level) / t), and the bounded ones make up
/// the demand. The sum is rising and its logarithm smooth: Newton's method on that, within a bracket.
double Proximal::level_with_bounds(std::size_t s, double soft_level) {
  const double demand = problem_.sources[s].demand_per_s, t = temperature_[s], inverse = 1.0 / t;
  double low = -std::numeric_limits<double>::infinity(), high = soft_level;
  double level = std::isfinite(level_[s]) && level_[s] < high ? level_[s] : high;
  for (int step = 0; step < 80; ++step) {
    double sum = demand * std::exp((level - soft_level) * inverse), slope = sum;
    for (std::uint32_t b = bounded_begin_[s]; b < bounded_begin_[s + 1]; ++b) {
      const Bounded& way = bounded_[b];
      const double share = 1.0 / (1.0 + std::exp(-(level - bounded_cost(way, s)) * inverse - way.logit));
      sum += way.most * share;
      slope += way.most * share * (1.0 - share);
    }
    if (std::abs(sum - demand) <= 1e-12 * demand) break;
    (sum > demand ? high : low) = level;
    double next = level - t * std::log(sum / demand) * sum / std::max(slope, 1e-12 * sum);
    next = std::max(next, level - 50.0 * t);
    if (!(next > low && next < high)) next = std::isfinite(low) ? 0.5 * (low + high) : level - 50.0 * t;
    if (next == level || high - low <= 1e-15 * std::abs(high)) break;
    level = next;
  }
  return level_[s] = level;
}

void Proximal::answer_row(std::size_t s, const std::vector<double>& price) {
  const Source& source = problem_.sources[s];
  const std::uint32_t first = columns_->begin[s], last = columns_->begin[s + 1];
  const double t = temperature_[s], inverse = 1.0 / t, demand = source.demand_per_s;
  const double refusal =
      (source.floor_fraction > 0.0 ? source.floor_shed_cost_s : source.shed_cost_s) - t * log_refusal_[s];
  double least = refusal;
  for (std::uint32_t k = first; k < last; ++k) {
    const Pair& pair = columns_->pairs[k];
    cost_[k] = pair.cost_s + pair.work_s * price[pair.engine.value];
    exponent_[k - first] = cost_[k] - t * log_centre_[k];
    least = std::min(least, exponent_[k - first]);
  }
  constexpr double cut = 25.0;
  double sum = 0.0;
  for (std::uint32_t k = first; k < last; ++k) {
    double& value = exponent_[k - first];
    const double below = (least - value) * inverse;
    value = below > -cut ? std::exp(below) : 0.0;
    sum += value;
  }
  double refused = refusal - least < cut * t ? std::exp((least - refusal) * inverse) : 0.0;
  sum += refused;
  double scale = demand / sum;
  const bool bounds = bounded_begin_[s] < bounded_begin_[s + 1];
  double level = 0.0;
  if (bounds) {
    const double soft_level = least - t * std::log(sum);
    level = level_with_bounds(s, soft_level);
    scale *= std::exp((level - soft_level) * inverse);
  }
  double slope = refused * scale * inverse;
  shed_[s] = refused * scale;
  for (std::uint32_t k = first; k < last; ++k) {
    const double flow = exponent_[k - first] * scale;
    flow_[k] = flow;
    if (flow <= negligible * demand) continue;
    const Pair& pair = columns_->pairs[k];
    work_[pair.engine.value] += flow * pair.work_s;
    const double pull = flow * inverse;
    slope += pull;
    pulls_.push_back({pair.engine.value, pull * pair.work_s, pair.work_s});
    stiffness_[pair.engine.value] += pull * pair.work_s * pair.work_s;
  }
  for (std::uint32_t b = bounded_begin_[s]; b < bounded_begin_[s + 1]; ++b) {
    const Bounded& way = bounded_[b];
    const double share = 1.0 / (1.0 + std::exp(-(level - bounded_cost(way, s)) * inverse - way.logit));
    const double flow = way.most * share, pull = flow * (1.0 - share) * inverse;
    slope += pull;
    if (way.column == none) {
      shed_[s] += flow;
      continue;
    }
    const Pair& pair = columns_->pairs[way.column];
    flow_[way.column] += flow;
    work_[pair.engine.value] += flow * pair.work_s;
    pulls_.push_back({pair.engine.value, pull * pair.work_s, pair.work_s});
    stiffness_[pair.engine.value] += pull * pair.work_s * pair.work_s;
  }
  slope_[s] = slope;
}

void Proximal::answer(const std::vector<double>& price) {
  std::fill(work_.begin(), work_.end(), 0.0);
  stiffness_.assign(price.size(), 0.0);
  pulls_.clear();
  pulls_.reserve(flow_.size() + bounded_.size());
  for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
    pulls_begin_[s] = static_cast<std::uint32_t>(pulls_.size());
    if (problem_.sources[s].demand_per_s > 0.0) answer_row(s, price);
  }
  pulls_begin_.back() = static_cast<std::uint32_t>(pulls_.size());
}

}  // namespace signalbox::optimizer
