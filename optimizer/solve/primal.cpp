#include "optimizer/solve/primal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "optimizer/solve/bound.hpp"

namespace signalbox::optimizer {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

Primal::Primal(const Problem& problem)
    : problem_(problem),
      churn_cost_(problem.reference_per_s.empty() ? 0.0 : problem.churn_cost_s),
      engines_(problem),
      shed_(problem.sources.size(), 0.0),
      level_(problem.sources.size(), 0.0),
      room_(problem),
      overfull_(problem),
      capped_(problem) {
  columns_.begin.assign(problem.sources.size() + 1, 0);
}

void Primal::start_from(std::span<const double> flow_per_s, std::span<const double> shed_per_s,
                        double least_share) {
  columns_.clear();
  for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
    const Source& source = problem_.sources[s];
    columns_.begin.push_back(static_cast<std::uint32_t>(columns_.pairs.size()));
    const std::size_t first = columns_.pairs.size();
    double total = shed_per_s.empty() ? 0.0 : std::max(0.0, shed_per_s[s]);
    shed_[s] = total;
    for (std::uint32_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const bool referenced = !problem_.reference_per_s.empty() && problem_.reference_per_s[i] > 0.0;
      const bool usable = engines_.usable(problem_.pairs[i].engine.at());
      if (!usable || (!(flow_per_s[i] > least_share * source.demand_per_s) && !referenced)) continue;
      columns_.add(problem_, i, std::max(0.0, flow_per_s[i]));
      total += columns_.flow_per_s.back();
    }
    const double scale = total > 0.0 ? source.demand_per_s / total : 0.0;
    shed_[s] = total > 0.0 ? shed_[s] * scale : source.demand_per_s;
    for (std::size_t k = first; k < columns_.pairs.size(); ++k) columns_.flow_per_s[k] *= scale;
  }
  columns_.begin.push_back(static_cast<std::uint32_t>(columns_.pairs.size()));
  recount_loads();
}

double Primal::price_and_extend(const std::vector<double>& price, double margin, double least_share) {
  cost_.resize(problem_.pairs.size());
  least_.assign(problem_.sources.size(), 0.0);
  last_.assign(problem_.sources.size(), 0.0);
  reach_.assign(engines_.size(), infinite);
  double sum = -engines_conjugate(problem_, price);
  std::vector<Segment> kept;
  for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
    const Source& source = problem_.sources[s];
    if (source.demand_per_s <= 0.0) continue;
    const std::uint32_t first = source.first_pair, last = first + source.pair_count;
    double cheapest = infinite;
    for (std::uint32_t i = first; i < last; ++i) {
      const Pair& pair = problem_.pairs[i];
      cost_[i] = pair.cost_s + pair.work_s * price[pair.engine.value];
      cheapest = std::min(cheapest, cost_[i]);
    }
    least_[s] =
        std::min(cheapest, source.floor_fraction > 0.0 ? source.floor_shed_cost_s : source.shed_cost_s);
    last_[s] = least_[s];
    const bool capped = room_.binds(s);
    if (capped) {
      const CappedRow row = capped_.value(s, price);
      last_[s] = std::max(least_[s], row.last);
      sum += row.cost;
    }
    const double inverse = 1.0 / std::max(std::abs(least_[s]), 1e-6);
    for (std::uint32_t i = first; i < last; ++i) {
      double& reach = reach_[problem_.pairs[i].engine.value];
      reach = std::min(reach, std::max(0.0, cost_[i] - last_[s]) * inverse);
    }
    if (capped) continue;
    kept.clear();
    double churn_paid = 0.0;
    if (churn_cost_ > 0.0)
      for (std::uint32_t k = columns_.begin[s]; k < columns_.begin[s + 1]; ++k)
        if (const double reference = columns_.reference_per_s[k]; reference > 0.0) {
          kept.push_back({cost_[columns_.origin[k]] - churn_cost_, reference});
          churn_paid += churn_cost_ * reference;
        }
    sum += row_value(source, cheapest, churn_paid, kept).cost;
  }
  extend(margin * marginal_to_mean(sum), least_share);
  return sum;
}

/// What all requests cost at these prices, `value`, over what they would cost if each were the last one: at high loads much less than 1.
double Primal::marginal_to_mean(double value) const {
  double all = 0.0;
  for (std::size_t s = 0; s < least_.size(); ++s)
    all += std::abs(least_[s]) * problem_.sources[s].demand_per_s;
  return all > 0.0 ? std::clamp(value / all, 1e-3, 1.0) : 1.0;
}

std::vector<double> Primal::cost_shares(double share, double value) const {
  std::vector<double> out(least_.size());
  const double scale = share * marginal_to_mean(value);
  for (std::size_t s = 0; s < out.size(); ++s) out[s] = scale * std::max(std::abs(least_[s]), 1e-6);
  return out;
}

void Primal::extend(double relative_margin, double least_share) {
  next_.clear();
  for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
    const Source& source = problem_.sources[s];
    next_.begin.push_back(static_cast<std::uint32_t>(next_.pairs.size()));
    if (source.demand_per_s <= 0.0) continue;
    const double scale = std::max(std::abs(least_[s]), 1e-6);
    std::uint32_t k = columns_.begin[s];
    const std::uint32_t last = columns_.begin[s + 1];
    for (std::uint32_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const bool known = k < last && columns_.origin[k] == i;
      const double excess = (cost_[i] - last_[s]) - scale * reach_[problem_.pairs[i].engine.value];
      const bool near = excess <= scale * relative_margin;
      if (known) {
        const double flow = columns_.flow_per_s[k];
        if (near || flow > least_share * source.demand_per_s || columns_.reference_per_s[k] > 0.0)
          next_.add(problem_, i, flow);
        ++k;
      } else if (near) {
        next_.add(problem_, i, 0.0);
      }
    }
  }
  next_.begin.push_back(static_cast<std::uint32_t>(next_.pairs.size()));
  std::swap(columns_, next_);
}

void Primal::sweep() {
  paid_.assign(engines_.size(), 0.0);
  paid_work_.assign(engines_.size(), 0.0);
  for (std::size_t s = 0; s < problem_.sources.size(); ++s)
    if (problem_.sources[s].demand_per_s > 0.0) balance_row(s);
}

/// The flow of a column when one more request of its row costs `level`: below the reference the churn cost is
/// earned back.
double Primal::flow_at(const Candidate& c, double level, double& softness) const {
  const auto free_flow = [&](double price, double& soft) {
    double bend = 0.0;
    const double load = engines_.load_at(c.engine, price, bend);
    if (load <= c.others) return soft = 0.0, 0.0;
    soft = bend * c.inverse_work * c.inverse_work;
    return (load - c.others) * c.inverse_work;
  };
  const double flow = free_flow((level - c.cost_s) * c.inverse_work, softness);
  if (flow >= c.reference || c.reference <= 0.0) return flow;
  double soft = 0.0;
  const double kept = free_flow((level - c.cost_s + churn_cost_) * c.inverse_work, soft);
  softness = kept < c.reference ? soft : 0.0;
  return std::min(kept, c.reference);
}

/// Balances one row exactly against what the other rows left on the engines.
void Primal::balance_row(std::size_t s) {
  const Source& source = problem_.sources[s];
  candidates_.clear();
  const std::uint32_t first = columns_.begin[s], last = columns_.begin[s + 1];
  const double last_resort = source.floor_fraction > 0.0 ? source.floor_shed_cost_s : source.shed_cost_s;
  for (std::uint32_t k = first; k < last; ++k) {
    const Pair& pair = columns_.pairs[k];
    const double inverse = 1.0 / pair.work_s;
    double& load = engines_.load[pair.engine.value];
    const double others = std::max(0.0, load - columns_.flow_per_s[k] * pair.work_s);
    const double reference = churn_cost_ > 0.0 ? columns_.reference_per_s[k] : 0.0;
    const double enter = pair.cost_s + pair.work_s * engines_.marginal(pair.engine.value, others) -
                         (reference > 0.0 ? churn_cost_ : 0.0);
    columns_.flow_per_s[k] = 0.0;
    load = others;
    if (enter >= last_resort) continue;
    candidates_.push_back({k, pair.engine.value, pair.cost_s, inverse, others, reference, enter});
  }
  Wanted wanted{source.demand_per_s, source.demand_per_s * source.floor_fraction, true, last_resort};
  double total = 0.0;
  if (room_.binds(s)) {
    room_.open(s);
    total = settle_within_caps(source, candidates_, wanted, room_.levels(), level_[s], level_[s]);
  } else {
    total = settle(source, candidates_, wanted, level_[s], level_[s]);
    for (Candidate& c : candidates_) c.level = level_[s];
  }
  for (const Candidate& c : candidates_) {
    columns_.flow_per_s[c.column] = c.flow;
    engines_.load[c.engine] += c.flow / c.inverse_work;
    if (!problem_.caps.empty()) note_paid(c);
  }
  shed_[s] = std::max(0.0, source.demand_per_s - total);
}

/// Where churn alone holds a flow, its worth is not known.
void Primal::note_paid(const Candidate& c) {
  if (c.flow <= 0.0 || c.flow == c.reference) return;
  const double worth = c.level - c.cost_s + (c.flow < c.reference ? churn_cost_ : 0.0);
  paid_[c.engine] += c.flow * worth;
  paid_work_[c.engine] += c.flow / c.inverse_work;
}

double Primal::served(std::span<const Candidate> part, double level, double& softness) const {
  double sum = 0.0;
  softness = 0.0;
  for (const Candidate& c : part) {
    if (c.enter >= level) continue;
    double soft = 0.0;
    sum += flow_at(c, level, soft);
    softness += soft;
  }
  return sum;
}

double Primal::level_for(std::span<const Candidate> part, double wanted, double low, double high,
                         double guess) const {
  double level = guess > low && guess < high ? guess : 0.5 * (low + high);
  for (int step = 0; step < 60; ++step) {
    double softness = 0.0;
    const double missing = wanted - served(part, level, softness);
    if (std::abs(missing) <= 1e-7 * wanted) break;
    if (missing > 0.0)
      low = level;
    else
      high = level;
    if (high - low <= 1e-13 * std::abs(high)) break;
    const double newton = softness > 0.0 ? level + missing / softness : low;
    level = newton > low && newton < high ? newton : 0.5 * (low + high);
  }
  return level;
}

/// The flows at this level, scaled to what is wanted; what they are together.
double Primal::put(std::span<Candidate> part, double level, double wanted) const {
  double sum = 0.0;
  for (Candidate& c : part) {
    double soft = 0.0;
    c.flow = c.enter < level ? flow_at(c, level, soft) : 0.0;
    sum += c.flow;
  }
  const double scale = sum > 0.0 ? wanted / sum : 0.0;
  for (Candidate& c : part) c.flow *= scale;
  return sum * scale;
}

/// Balances the part among itself: the level at which its columns take what it does not shed. What they take.
double Primal::settle(const Source& source, std::span<Candidate> part, const Wanted& ask, double guess,
                      double& level) const {
  double entry = ask.most_level;
  for (const Candidate& c : part) entry = std::min(entry, c.enter);
  if (!ask.refusable) {
    level = level_for(part, ask.rate, std::min(entry, ask.most_level), ask.most_level, guess);
    return put(part, level, ask.rate);
  }
  double softness = 0.0, wanted = ask.rate;
  double high = source.shed_cost_s, low = std::min(entry, high);
  const double at_shed = served(part, source.shed_cost_s, softness);
  level = source.shed_cost_s;
  if (at_shed < wanted) {  // it sheds
    wanted = std::max(at_shed, ask.protected_rate);
    if (at_shed < ask.protected_rate) {
      const double at_last = served(part, ask.most_level, softness);
      wanted = std::min(ask.protected_rate, at_last);
      low = source.shed_cost_s;
      level = high = ask.most_level;
    }
  }
  if (wanted > at_shed || at_shed > ask.rate) level = level_for(part, wanted, low, high, guess);
  return put(part, level, std::min(wanted, ask.rate));
}

/// The same within the first `levels` caps: see Overfull.
double Primal::settle_within_caps(const Source& source, std::span<Candidate> part, Wanted wanted,
                                  std::size_t levels, double guess, double& level) {
  double capped = 0.0;
  for (;;) {
    const double taken = settle(source, part, wanted, guess, level);
    const std::size_t rest = overfull_.set_apart(part, room_, levels, 1e-9 * source.demand_per_s);
    if (rest == part.size()) {
      for (Candidate& c : part) c.level = level;
      return capped + taken;
    }
    Overfull::for_each_group(part.subspan(rest), room_, [&](auto group, std::size_t l, double most) {
      capped += most;
      wanted.rate = std::max(0.0, wanted.rate - most);
      wanted.protected_rate = std::max(0.0, wanted.protected_rate - most);
      double inside = 0.0;
      settle_within_caps(source, group, {most, 0.0, false, level}, l, level, inside);
    });
    part = part.first(rest);
  }
}

void Primal::recount_loads() {
  std::vector<double> load(engines_.size(), 0.0);
  for (std::size_t k = 0; k < columns_.pairs.size(); ++k)
    load[columns_.pairs[k].engine.at()] += columns_.pairs[k].work_s * columns_.flow_per_s[k];
  engines_.load = std::move(load);
}

std::vector<double> Primal::prices_paid() const {
  std::vector<double> out(engines_.size(), infinite);
  for (std::size_t e = 0; e < out.size(); ++e)
    if (engines_.usable(e))
      out[e] = paid_work_[e] > 0.0 ? paid_[e] / paid_work_[e] : engines_.marginal(e, engines_.load[e]);
  return out;
}

double Primal::objective() const {
  double sum = 0.0;
  for (std::size_t e = 0; e < engines_.size(); ++e)
    if (engines_.usable(e)) sum += problem_.engines[e].curve.cost(engines_.load[e]);
  for (std::size_t k = 0; k < columns_.pairs.size(); ++k) {
    sum += columns_.pairs[k].cost_s * columns_.flow_per_s[k];
    sum += churn_cost_ * std::max(0.0, columns_.reference_per_s[k] - columns_.flow_per_s[k]);
  }
  for (std::size_t s = 0; s < shed_.size(); ++s) {
    const Source& source = problem_.sources[s];
    const double open = source.demand_per_s * (1.0 - source.floor_fraction);
    sum += source.shed_cost_s * std::min(shed_[s], open) +
           source.floor_shed_cost_s * std::max(0.0, shed_[s] - open);
  }
  return sum;
}

}  // namespace signalbox::optimizer
