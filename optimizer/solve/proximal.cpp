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
constexpr double infinite = std::numeric_limits<double>::infinity();

double logit(double share) {
  const double inside = std::clamp(share, 1e-3, 1.0 - 1e-3);
  return std::log(inside / (1.0 - inside));
}

}  // namespace

Proximal::Proximal(const Problem& problem, double churn_cost)
    : problem_(problem), churn_cost_(churn_cost), room_(problem), overfull_(problem) {}

void Proximal::centre(const Columns& columns, const std::vector<double>& shed_per_s) {
  columns_ = &columns;
  const std::size_t rows = problem_.sources.size(), count = columns.pairs.size();
  flow_.assign(count, 0.0);
  cost_.assign(count, 0.0);
  log_centre_.assign(count, 0.0);
  shed_ = shed_per_s;
  work_.assign(problem_.engines.size(), 0.0);
  log_refusal_.assign(rows, 0.0);
  level_.resize(rows, std::numeric_limits<double>::quiet_NaN());
  bounded_.clear();
  bounded_begin_.assign(rows + 1, 0);
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

/// The share of a bounded way that is used at this level.
double Proximal::kept_share(const Bounded& way, std::size_t s, double level) const {
  return 1.0 / (1.0 + std::exp(-(level - bounded_cost(way, s)) * (1.0 / temperature_[s]) - way.logit));
}

/// The level at which the unbounded ways, whose sum is total * exp((level - soft_level) / t), and the bounded ones that `for_each` visits
/// make up the total. The sum is rising and its logarithm smooth: Newton's method on that, within a bracket.
template <class ForEach>
double Proximal::level_with_bounds(std::size_t s, double total, double soft_level, double guess,
                                   ForEach for_each) const {
  const double t = temperature_[s], inverse = 1.0 / t;
  double low = -std::numeric_limits<double>::infinity(), high = soft_level;
  double level = std::isfinite(guess) && guess < high ? guess : high;
  for (int step = 0; step < 80; ++step) {
    double sum = total * std::exp((level - soft_level) * inverse), slope = sum;
    for_each([&](const Bounded& way) {
      const double share = kept_share(way, s, level);
      sum += way.most * share;
      slope += way.most * share * (1.0 - share);
    });
    if (std::abs(sum - total) <= 1e-12 * total) break;
    (sum > total ? high : low) = level;
    double next = level - t * std::log(sum / total) * sum / std::max(slope, 1e-12 * sum);
    next = std::max(next, level - 50.0 * t);
    if (!(next > low && next < high)) next = std::isfinite(low) ? 0.5 * (low + high) : level - 50.0 * t;
    if (next == level || high - low <= 1e-15 * std::abs(high)) break;
    level = next;
  }
  return level;
}

void Proximal::add_pull(Part& part, std::uint32_t column, double flow, double pull) {
  const Pair& pair = columns_->pairs[column];
  work_[pair.engine.value] += flow * pair.work_s;
  part.slope += pull;
  pulls_.push_back({pair.engine.value, pull * pair.work_s, pair.work_s});
  stiffness_[pair.engine.value] += pull * pair.work_s * pair.work_s;
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
    level = level_[s] = level_with_bounds(s, demand, soft_level, level_[s], [&](auto visit) {
      for (std::uint32_t b = bounded_begin_[s]; b < bounded_begin_[s + 1]; ++b) visit(bounded_[b]);
    });
    scale *= std::exp((level - soft_level) * inverse);
  }
  Part& part = parts_[s];
  part.slope = refused * scale * inverse;
  shed_[s] = refused * scale;
  for (std::uint32_t k = first; k < last; ++k) {
    const double flow = exponent_[k - first] * scale;
    flow_[k] = flow;
    if (flow > negligible * demand) add_pull(part, k, flow, flow * inverse);
  }
  for (std::uint32_t b = bounded_begin_[s]; b < bounded_begin_[s + 1]; ++b) {
    const Bounded& way = bounded_[b];
    const double share = kept_share(way, s, level), flow = way.most * share;
    const double pull = flow * (1.0 - share) * inverse;
    if (way.column == none) {
      part.slope += pull;
      shed_[s] += flow;
    } else {
      flow_[way.column] += flow;
      add_pull(part, way.column, flow, pull);
    }
  }
  part.end = static_cast<std::uint32_t>(pulls_.size());
}

/// The same where caps bind the row.
void Proximal::answer_capped_row(std::size_t s, const std::vector<double>& price) {
  const Source& source = problem_.sources[s];
  const std::uint32_t first = columns_->begin[s], last = columns_->begin[s + 1];
  const double t = temperature_[s];
  const double refusal =
      (source.floor_fraction > 0.0 ? source.floor_shed_cost_s : source.shed_cost_s) - t * log_refusal_[s];
  members_.clear();
  for (std::uint32_t k = first; k < last; ++k) {
    const Pair& pair = columns_->pairs[k];
    cost_[k] = pair.cost_s + pair.work_s * price[pair.engine.value];
    members_.push_back({k, pair.engine.value, none, cost_[k] - t * log_centre_[k]});
  }
  for (std::uint32_t b = bounded_begin_[s]; b < bounded_begin_[s + 1]; ++b)
    if (bounded_[b].column != none) members_[bounded_[b].column - first].bounded = b;
  room_.open(s);
  const Part own = answer_part(s, members_, source.demand_per_s, refusal, room_.levels());
  parts_[s] = own;
}

/// Visits the bounded ways of these members, and of refusals.
template <class Visit>
void Proximal::for_each_bounded(std::span<const Member> members, std::size_t s, bool refusable,
                                Visit visit) const {
  for (const Member& m : members)
    if (m.bounded != none) visit(bounded_[m.bounded]);
  for (std::uint32_t b = bounded_begin_[s]; refusable && b < bounded_begin_[s + 1]; ++b)
    if (bounded_[b].column == none) visit(bounded_[b]);
}

/// What these members get of the total, which may be refused where `refusal` is finite; see Overfull.
auto Proximal::answer_part(std::size_t s, std::span<Member> members, double total, double refusal,
                           std::size_t levels) -> Part {
  const double t = temperature_[s], inverse = 1.0 / t, demand = problem_.sources[s].demand_per_s;
  const bool refusable = std::isfinite(refusal);
  double level = 0.0, scale = 0.0, refused_weight = 0.0;
  for (;;) {
    total = std::max(total, negligible * demand);
    double least = refusal;
    for (const Member& m : members) least = std::min(least, m.cost_s);
    double sum = refused_weight = refusable ? std::exp((least - refusal) * inverse) : 0.0;
    for (Member& m : members) sum += m.weight = std::exp((least - m.cost_s) * inverse);
    const double soft_level = least - t * std::log(sum / total);
    level = level_with_bounds(s, total, soft_level, refusable ? level_[s] : soft_level,
                              [&](auto visit) { for_each_bounded(members, s, refusable, visit); });
    scale = std::exp((level - least) * inverse);
    for (Member& m : members)
      m.flow =
          m.weight * scale +
          (m.bounded != none ? bounded_[m.bounded].most * kept_share(bounded_[m.bounded], s, level) : 0.0);
    const std::size_t rest = overfull_.set_apart(members, room_, levels, negligible * demand);
    if (rest == members.size()) break;
    Overfull::for_each_group(members.subspan(rest), room_, [&](auto group, std::size_t l, double most) {
      total -= most;
      const Part inside = answer_part(s, group, most, infinite, l);
      parts_.push_back(inside);
    });
    members = members.first(rest);
  }
  Part part{static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(pulls_.size())};
  for (const Member& m : members) {
    flow_[m.column] = m.flow;
    const double soft = m.weight * scale, kept = m.flow - soft;
    const double pull =
        (soft + kept * (m.bounded != none ? 1.0 - kept / bounded_[m.bounded].most : 0.0)) * inverse;
    if (m.flow > negligible * demand) add_pull(part, m.column, m.flow, pull);
  }
  part.end = static_cast<std::uint32_t>(pulls_.size());
  if (!refusable) return part;
  level_[s] = level;
  shed_[s] = refused_weight * scale;
  part.slope += shed_[s] * inverse;
  for_each_bounded({}, s, true, [&](const Bounded& way) {
    const double share = kept_share(way, s, level);
    shed_[s] += way.most * share;
    part.slope += way.most * share * (1.0 - share) * inverse;
  });
  return part;
}

void Proximal::answer(const std::vector<double>& price) {
  std::fill(work_.begin(), work_.end(), 0.0);
  stiffness_.assign(price.size(), 0.0);
  pulls_.clear();
  pulls_.reserve(flow_.size() + bounded_.size());
  const std::size_t rows = problem_.sources.size();
  parts_.assign(rows, {});
  for (std::size_t s = 0; s < rows; ++s) {
    parts_[s].source = static_cast<std::uint32_t>(s);
    parts_[s].begin = parts_[s].end = static_cast<std::uint32_t>(pulls_.size());
    if (problem_.sources[s].demand_per_s <= 0.0) continue;
    if (room_.binds(s))
      answer_capped_row(s, price);
    else
      answer_row(s, price);
  }
}

}  // namespace signalbox::optimizer
