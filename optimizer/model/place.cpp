#include "optimizer/model/place.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::optimizer {
namespace {

using Holders = std::vector<std::vector<EngineIndex>>;

/// Flows have settled when no request gains more than this share of what it costs by another engine.
constexpr double settled = 1e-10;
constexpr int most_sweeps = 400;
/// Of the objective: a gain below this is rounding.
constexpr double rounding = 1e-9;
constexpr int most_passes = 64;
constexpr double most_growth = 64;
constexpr int halvings = 12;
/// Up to so many choices a step may be any two changes; beyond, only two of one group or of one engine.
constexpr std::size_t few_choices = 40;

bool holds(const std::vector<EngineIndex>& of, EngineIndex e) { return std::ranges::binary_search(of, e); }
void insert(std::vector<EngineIndex>& into, EngineIndex e) {
  into.insert(std::ranges::lower_bound(into, e), e);
}
void remove(std::vector<EngineIndex>& from, EngineIndex e) { std::erase(from, e); }

/// The flows' own problem for given holders: convex and separable.
class Flows {
 public:
  Flows(const PlacementProblem& problem, const Holders& holders) : problem_(problem) {
    for (const PlacementEngine& engine : problem.engines) load_.push_back(engine.base_load);
    for (const PlacementRow& row : problem.rows) {
      Row& out = rows_.emplace_back();
      for (const PlacementOption& option : row.options) {
        const bool hit = holds(holders[row.group], option.engine);
        out.cost.push_back(hit ? option.hit_cost_s : option.miss_cost_s);
        out.work.push_back(hit ? option.hit_work_s : option.miss_work_s);
      }
      out.flow.assign(row.options.size(), 0.0);
      put_first(row, out);
    }
  }

  void settle() {
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
      bool moved = false;
      for (std::size_t r = 0; r < rows_.size(); ++r) moved |= balance(problem_.rows[r], rows_[r]);
      if (!moved) return;
    }
  }

  double cost() const {
    double sum = 0;
    for (const Row& row : rows_)
      for (std::size_t i = 0; i < row.flow.size(); ++i) sum += row.flow[i] * row.cost[i];
    for (std::size_t e = 0; e < load_.size(); ++e) {
      const PlacementEngine& engine = problem_.engines[e];
      if (engine.curve.ceiling > 0 && load_[e] != engine.base_load)
        sum += engine.curve.cost(load_[e]) - engine.curve.cost(engine.base_load);
    }
    return sum;
  }

  std::vector<std::vector<double>> take() {
    std::vector<std::vector<double>> out;
    for (Row& row : rows_) out.push_back(std::move(row.flow));
    return out;
  }

 private:
  struct Row {
    std::vector<double> cost, work, flow;
  };

  const CongestionCurve& curve(const PlacementOption& option) const {
    return problem_.engines[option.engine.at()].curve;
  }
  bool usable(const PlacementOption& option) const { return curve(option).ceiling > 0; }
  double marginal(const PlacementRow& row, const Row& at, std::size_t i) const {
    return at.cost[i] + at.work[i] * curve(row.options[i]).marginal(load_[row.options[i].engine.at()]);
  }

  void put_first(const PlacementRow& row, Row& out) {
    std::size_t best = row.options.size();
    for (std::size_t i = 0; i < row.options.size(); ++i)
      if (usable(row.options[i]) &&
          (best == row.options.size() || marginal(row, out, i) < marginal(row, out, best)))
        best = i;
    if (best == row.options.size()) return;
    move(row, out, best, row.rate_per_s);
  }

  void move(const PlacementRow& row, Row& at, std::size_t i, double flow) {
    at.flow[i] = std::max(0.0, at.flow[i] + flow);
    load_[row.options[i].engine.at()] += flow * at.work[i];
  }

  /// From each dearer place to the cheapest, by Newton's step for the two. True if anything moved.
  bool balance(const PlacementRow& row, Row& at) {
    bool moved = false;
    for (std::size_t from = 0; from < at.flow.size(); ++from) {
      if (at.flow[from] <= 0) continue;
      std::size_t to = from;
      for (std::size_t i = 0; i < at.flow.size(); ++i)
        if (usable(row.options[i]) && marginal(row, at, i) < marginal(row, at, to)) to = i;
      const double dear = marginal(row, at, from), gain = dear - marginal(row, at, to);
      if (to == from || gain <= settled * std::max(std::abs(dear), 1e-12)) continue;
      const auto bend = [&](std::size_t i) {
        const double load = load_[row.options[i].engine.at()];
        return at.work[i] * at.work[i] * curve(row.options[i]).curvature(load);
      };
      const double step = std::min(at.flow[from], gain / std::max(bend(from) + bend(to), 1e-300));
      move(row, at, from, -step);
      move(row, at, to, step);
      moved = true;
    }
    return moved;
  }

  const PlacementProblem& problem_;
  std::vector<Row> rows_;
  std::vector<double> load_;  ///< by engine
};

class Search {
 public:
  Search(const PlacementProblem& problem, double least_gain)
      : problem_(problem), least_gain_(std::max(least_gain, rounding)), free_(problem.engines.size()) {
    for (std::size_t e = 0; e < free_.size(); ++e) free_[e] = problem.engines[e].memory_tokens;
    places_.resize(problem.group_tokens.size());
    for (const PlacementRow& row : problem.rows)
      for (const PlacementOption& option : row.options)
        if (problem.engines[option.engine.at()].curve.ceiling > 0 &&
            !holds(places_[row.group], option.engine))
          insert(places_[row.group], option.engine);
    for (const auto& of_group : places_) choices_ += of_group.size();
  }

  Placement run(const Holders& start) {
    best_ = flows_for(problem_, fitting(start));
    for (int pass = 0; pass < most_passes && improve(); ++pass) {
    }
    return std::move(best_);
  }

  /// Whether one more holder of the group pays, wherever there is room.
  bool one_more_pays(const Holders& now, std::uint32_t group) const {
    const double cost = flows_for(problem_, now).objective;
    return std::ranges::any_of(places_[group], [&](EngineIndex e) {
      if (holds(now[group], e)) return false;
      Holders more = now;
      insert(more[group], e);
      return fits(more) && flows_for(problem_, std::move(more)).objective < cost;
    });
  }

 private:
  Holders fitting(const Holders& start) {
    Holders out(problem_.group_tokens.size());
    std::vector<double> left = free_;
    for (std::size_t g = 0; g < std::min(out.size(), start.size()); ++g)
      for (const EngineIndex e : start[g]) {
        if (!holds(places_[g], e) || left[e.at()] < problem_.group_tokens[g]) continue;
        left[e.at()] -= problem_.group_tokens[g];
        insert(out[g], e);
      }
    return out;
  }

  bool fits(const Holders& holders) const {
    std::vector<double> left = free_;
    for (std::size_t g = 0; g < holders.size(); ++g)
      for (const EngineIndex e : holders[g])
        if ((left[e.at()] -= problem_.group_tokens[g]) < 0) return false;
    return true;
  }

  bool try_out(Holders holders) {
    if (!fits(holders)) return false;
    Placement here = flows_for(problem_, std::move(holders));
    if (!(here.objective < best_.objective - least_gain_ * std::abs(best_.objective))) return false;
    best_ = std::move(here);
    return true;
  }

  /// One pass over all steps from the best so far. True if one was made.
  bool improve() {
    for (std::uint32_t g = 0; g < places_.size(); ++g)
      for (const EngineIndex e : places_[g])
        if (step(g, e)) return true;
    return false;
  }

  /// Whether the group is better on (or off) this engine, alone or with another change that goes with it.
  bool step(std::uint32_t g, EngineIndex e) {
    Holders changed = best_.holders;
    const bool held = holds(changed[g], e);
    held ? remove(changed[g], e) : insert(changed[g], e);
    if (try_out(changed)) return true;
    for (std::uint32_t other = 0; other < places_.size(); ++other)
      for (const EngineIndex there : places_[other]) {
        if (other == g && there == e) continue;
        if (other < g || (other == g && there < e)) continue;  // tried from there
        if (choices_ > few_choices && other != g && there != e) continue;
        Holders two = changed;
        holds(two[other], there) ? remove(two[other], there) : insert(two[other], there);
        if (try_out(std::move(two))) return true;
      }
    return false;
  }

  const PlacementProblem& problem_;
  const double least_gain_;
  std::vector<double> free_;  ///< memory by engine
  Holders places_;            ///< by group: engines that could hold it
  std::size_t choices_ = 0;
  Placement best_;
};

double rate_of(const PlacementProblem& problem, std::uint32_t group) {
  double sum = 0;
  for (const PlacementRow& row : problem.rows)
    if (row.group == group) sum += row.rate_per_s;
  return sum;
}

}  // namespace

Placement flows_for(const PlacementProblem& problem, std::vector<std::vector<EngineIndex>> holders) {
  Flows flows(problem, holders);
  flows.settle();
  Placement out;
  out.objective = flows.cost();
  for (std::size_t g = 0; g < holders.size(); ++g)
    for (const EngineIndex e : holders[g])
      out.objective += problem.group_tokens[g] * problem.engines[e.at()].hold_cost_s_per_token;
  out.flow_per_s = flows.take();
  out.holders = std::move(holders);
  return out;
}

Placement place(const PlacementProblem& problem, const std::vector<std::vector<EngineIndex>>& start,
                double least_gain) {
  return Search(problem, least_gain).run(start);
}

double more_at_per_s(const PlacementProblem& problem, const Placement& placement, std::uint32_t group) {
  const double rate = rate_of(problem, group);
  PlacementProblem grown = problem;
  const Search search(grown, 0);  // what fits where does not depend on rates
  const auto pays = [&](double growth) {
    for (std::size_t r = 0; r < grown.rows.size(); ++r)
      if (grown.rows[r].group == group) grown.rows[r].rate_per_s = problem.rows[r].rate_per_s * growth;
    return search.one_more_pays(placement.holders, group);
  };
  double low = 1, high = most_growth;
  if (rate <= 0 || !pays(high)) return 0;
  for (int i = 0; i < halvings; ++i) {
    const double middle = std::sqrt(low * high);
    (pays(middle) ? high : low) = middle;
  }
  return rate * high;
}

}  // namespace signalbox::optimizer
