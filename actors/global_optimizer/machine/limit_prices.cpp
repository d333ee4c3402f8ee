#include "actors/global_optimizer/machine/limit_prices.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>

#include "actors/global_optimizer/machine/caps.hpp"
#include "actors/global_optimizer/machine/ceilings.hpp"
#include "actors/global_optimizer/machine/survive.hpp"

namespace signalbox::global_optimizer {

namespace {

using schema::PolicyLimit;

/// Share of a row that is moved to see what forbids it.
constexpr double step = 0.01;
/// A saving below this share of what a request costs is within the plan's own gap.
constexpr double least_saving = 0.01;
/// The dearest engines of a row that are tried: moves within a domain do not meet its cap.
constexpr std::size_t most_tried = 4;
constexpr double full = 1 - 1e-6;
constexpr int most_shifts = 24, most_halvings = 6;
/// Questions whether limits forbid a move: of one row, and of all rows of a plan.
constexpr int most_asked_of_row = 48, most_asked = 4000;
/// Of a row; less is not worth another step.
constexpr double least_shift = 1e-4;
/// Sums of differences up to this are rounding.
constexpr double least_churn = 1e-9;

class Marginals {
 public:
  Marginals(std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
            const optimizer::BuiltProblem& built, const optimizer::Plan& plan)
      : snapshots_(snapshots),
        facts_(facts),
        problem_(built.problem),
        plan_(plan),
        domains_(*facts.table),
        survival_(snapshots, facts) {
    for (std::size_t e = 0; e < problem_.engines.size(); ++e) marginal_.push_back(marginal(e));
  }

  void price_rows() {
    for (std::size_t s = 0; s < problem_.sources.size(); ++s)
      if (problem_.sources[s].pair_count > 1 && problem_.sources[s].demand_per_s > plan_.shed_per_s[s])
        price(s);
  }

  void even_out_rows() {
    std::set<std::pair<std::size_t, ClassIndex>> moved;
    for (std::size_t i = 0; i < snapshots_.size(); ++i)
      for (const schema::LimitRow& row : snapshots_[i].limits)
        if (row.moved != 0) moved.emplace(i, row.request_class);
    for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
      const optimizer::Source& source = problem_.sources[s];
      if (source.pair_count > 1 && source.demand_per_s > plan_.shed_per_s[s] &&
          moved.contains({source.cluster.at(), source.service_class}))
        even_out(s);
    }
  }

 private:
  struct Row {
    std::size_t snapshot;
    ClassIndex of;
    double rate_per_s;
    std::vector<Share> shares;
    std::vector<double> cost_s;    ///< beside it: of the next request there
    std::vector<double> in_force;  ///< beside it, as churn measures from it; empty if nothing limits churn
    double may_move = 0;           ///< the sum of all differences to it
  };

  double marginal(std::size_t e) const {
    const optimizer::CongestionCurve& curve = problem_.engines[e].curve;
    const double slope = curve.ceiling > 0 ? curve.marginal(plan_.load[e]) : 0;
    return plan_.load[e] >= full * curve.ceiling ? std::max(slope, plan_.price[e]) : slope;
  }

  Row row_of(std::size_t s) const {
    const optimizer::Source& source = problem_.sources[s];
    Row out{source.cluster.at(), source.service_class, 0, {}, {}, {}, 0};
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      out.shares.push_back({.engine = problem_.pairs[i].engine, .weight = plan_.flow_per_s[i]});
      out.rate_per_s += plan_.flow_per_s[i];
    }
    for (Share& share : out.shares) share.weight = out.rate_per_s > 0 ? share.weight / out.rate_per_s : 0;
    set_costs(s, out);
    if (!facts_.may_move.empty()) set_in_force(s, out);
    return out;
  }
  void set_in_force(std::size_t s, Row& row) const {
    const auto of = std::ranges::equal_range(facts_.fleet.routes, optimizer::SourceIndex(s), {},
                                             &optimizer::Route::source);
    double sum = 0;
    for (const Share& share : row.shares) {
      const auto route = std::ranges::lower_bound(of, share.engine, {}, &optimizer::Route::engine);
      const bool known = route != of.end() && route->engine == share.engine;
      row.in_force.push_back(
          known ? facts_.in_force[static_cast<std::size_t>(&*route - facts_.fleet.routes.data())] : 0);
      sum += row.in_force.back();
    }
    if (sum <= 0) return row.in_force.clear();  // nothing was in force
    for (double& weight : row.in_force) weight /= sum;
    row.may_move = facts_.may_move[s];
  }
  static double moved(const Row& row) {
    double out = 0;
    for (std::size_t i = 0; i < row.in_force.size(); ++i)
      out += std::abs(row.shares[i].weight - row.in_force[i]);
    return out;
  }
  void set_costs(std::size_t s, Row& row) const {
    row.cost_s.clear();
    for (const optimizer::Pair& pair : problem_.pairs_of(problem_.sources[s]))
      row.cost_s.push_back(pair.cost_s + pair.work_s * marginal_[pair.engine.at()]);
  }

  /// Places in the row, the dearest used ones first.
  static std::vector<std::size_t> dearest(const Row& row) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < row.shares.size(); ++i)
      if (row.shares[i].weight > 0) out.push_back(i);
    const auto n = static_cast<std::ptrdiff_t>(std::min(out.size(), most_tried));
    std::ranges::partial_sort(out, out.begin() + n, [&](std::size_t a, std::size_t b) {
      return std::pair(-row.cost_s[a], a) < std::pair(-row.cost_s[b], b);
    });
    out.resize(static_cast<std::size_t>(n));
    return out;
  }
  static std::vector<std::size_t> cheapest(const Row& row) {
    std::vector<std::size_t> out(row.shares.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    const auto n = static_cast<std::ptrdiff_t>(std::min(out.size(), most_tried));
    std::ranges::partial_sort(out, out.begin() + n, [&](std::size_t a, std::size_t b) {
      return std::pair(row.cost_s[a], a) < std::pair(row.cost_s[b], b);
    });
    out.resize(static_cast<std::size_t>(n));
    return out;
  }
  static bool saves(const Row& row, std::size_t from, std::size_t to) {
    return row.cost_s[from] - row.cost_s[to] > least_saving * std::abs(row.cost_s[to]);
  }

  void price(std::size_t s) {
    Row row = row_of(s);
    const std::size_t to = cheapest(row).front();
    std::vector<PolicyLimit> known;
    for (const std::size_t from : dearest(row)) {
      if (from == to || !saves(row, from, to)) break;
      const double part = std::min(step, row.shares[from].weight);
      auto limits = forbidding(row, from, to, part);
      if (churn_forbids(row, from, to, part)) limits.push_back(PolicyLimit::churn);
      for (const PolicyLimit limit : limits)
        if (!std::ranges::count(known, limit)) {
          known.push_back(limit);
          say(row, to, limit, row.cost_s[from] - row.cost_s[to]);
        }
    }
  }

  void even_out(std::size_t s) {
    Row row = row_of(s);
    bool any = false;
    row_may_ask_ = most_asked_of_row;
    for (int i = 0; i < most_shifts && shift(s, row); ++i) any = true;
    if (any) write(row);
  }

  /// One Newton step from a dear engine to a cheap one, as far as limits and ceilings let it go; false if none is worth it.
  bool shift(std::size_t s, Row& row) {
    const std::span<const optimizer::Pair> pairs = problem_.pairs_of(problem_.sources[s]);
    for (const std::size_t from : dearest(row))
      for (const std::size_t to : cheapest(row)) {
        if (from == to || !saves(row, from, to)) break;
        const auto bend = [&](std::size_t i) {
          const std::size_t e = pairs[i].engine.at();
          return pairs[i].work_s * pairs[i].work_s * problem_.engines[e].curve.curvature(plan_.load[e]);
        };
        double moved = std::min(row.shares[from].weight, (row.cost_s[from] - row.cost_s[to]) /
                                                             (bend(from) + bend(to)) / row.rate_per_s);
        const std::size_t e = pairs[to].engine.at();
        moved = std::min(
            moved, (problem_.engines[e].curve.ceiling - plan_.load[e]) / pairs[to].work_s / row.rate_per_s);
        for (int halving = 0; halving < most_halvings && moved > least_shift; ++halving, moved /= 2) {
          if (--row_may_ask_ < 0 || --may_ask_ < 0) return false;
          if (!forbidding(row, from, to, moved).empty()) continue;
          row.shares[from].weight -= moved, row.shares[to].weight += moved;
          survival_.move(row.snapshot, row.of, row.shares[from].engine, row.shares[to].engine, moved);
          load(pairs[from], -moved * row.rate_per_s);
          load(pairs[to], moved * row.rate_per_s);
          set_costs(s, row);
          return true;
        }
      }
    return false;
  }
  void load(const optimizer::Pair& pair, double more_per_s) {
    plan_.load[pair.engine.at()] += pair.work_s * more_per_s;
    marginal_[pair.engine.at()] = marginal(pair.engine.at());
  }

  void write(const Row& row) {
    auto& weights = snapshots_[row.snapshot].weights;
    const auto [from, to] = std::ranges::equal_range(weights, row.of, {}, &schema::WeightRow::request_class);
    const std::vector<schema::WeightRow> old(from, to);
    std::vector<schema::WeightRow> fresh;
    for (const Share& share : row.shares) {
      if (share.weight <= 0) continue;
      const auto was = std::ranges::find(old, share.engine, &schema::WeightRow::engine);
      const double in_flight = was == old.end() ? 0 : was->planned_inflight / was->weight * share.weight;
      fresh.push_back({row.of, share.engine, share.weight, in_flight});
    }
    for (const Share& share : row.shares) {
      const auto was = std::ranges::find(old, share.engine, &schema::WeightRow::engine);
      add_moved(row, share.engine, share.weight - (was == old.end() ? 0 : was->weight));
    }
    const auto place = weights.erase(from, to);
    weights.insert(place, fresh.begin(), fresh.end());
  }

  /// To what limits have moved.
  void add_moved(const Row& row, EngineIndex e, double more) {
    if (std::abs(more) <= 1e-6) return;
    std::vector<schema::LimitRow>& limits = snapshots_[row.snapshot].limits;
    const auto of_row = [&](const schema::LimitRow& l) { return l.request_class == row.of && l.moved != 0; };
    auto known = std::ranges::find_if(limits, [&](const auto& l) { return of_row(l) && l.engine == e; });
    if (known == limits.end()) {
      const auto any = std::ranges::find_if(limits, of_row);
      if (any == limits.end()) return;
      limits.push_back({row.of, e, any->limit, 0, true});
      known = limits.end() - 1;
    }
    known->moved = std::clamp(known->moved + more, -1.0, 1.0);
  }

  std::vector<PolicyLimit> forbidding(Row& row, std::size_t from, std::size_t to, double moved) const {
    const policy::Limits& limits = facts_.policy->limits;
    std::vector<PolicyLimit> out;
    if (survival_.forbids(row.snapshot, row.of, row.shares[from].engine, row.shares[to].engine, moved))
      out.push_back(PolicyLimit::survival);
    const bool spread = keeps_spread(row.shares, domains_, facts_.policy->at(row.of));
    row.shares[from].weight -= moved, row.shares[to].weight += moved;
    if (limits.engine_weight_cap && row.shares[to].weight > *limits.engine_weight_cap)
      out.push_back(PolicyLimit::weight_cap);
    for (const auto& [level, cap] : limits.domain_caps()) {
      if (!cap) continue;
      const std::vector<std::uint32_t>& domain = domains_.at(level);
      const auto home = [&](std::size_t i) { return domain[row.shares[i].engine.at()]; };
      double sum = 0;
      for (std::size_t i = 0; i < row.shares.size(); ++i)
        sum += home(i) == home(to) ? row.shares[i].weight : 0;
      if (home(from) != home(to) && sum > *cap) {
        out.push_back(PolicyLimit::domain_cap);
        break;
      }
    }
    if (spread && !keeps_spread(row.shares, domains_, facts_.policy->at(row.of)))
      out.push_back(PolicyLimit::spread);
    row.shares[from].weight += moved, row.shares[to].weight -= moved;
    return out;
  }

  /// Evening out comes before churn is held, pricing after it.
  static bool churn_forbids(Row& row, std::size_t from, std::size_t to, double part) {
    if (row.in_force.empty()) return false;
    const double before = moved(row);
    row.shares[from].weight -= part, row.shares[to].weight += part;
    const double after = moved(row);
    row.shares[from].weight += part, row.shares[to].weight -= part;
    return after > before && after > row.may_move + least_churn;
  }

  void say(const Row& row, std::size_t to, PolicyLimit limit, double saving) {
    std::vector<schema::LimitRow>& limits = snapshots_[row.snapshot].limits;
    const EngineIndex e = row.shares[to].engine;
    const auto known = std::ranges::find_if(limits, [&](const schema::LimitRow& l) {
      return l.request_class == row.of && l.engine == e && l.limit == limit;
    });
    if (known == limits.end())
      limits.push_back({row.of, e, limit, 0, true, saving});
    else
      known->price_s = saving;
  }

  std::vector<schema::RoutingSnapshot>& snapshots_;
  const Facts& facts_;
  const optimizer::Problem& problem_;
  optimizer::Plan plan_;  ///< its loads follow the rows
  const Domains domains_;
  SurvivalProbe survival_;
  int row_may_ask_ = 0, may_ask_ = most_asked;
  std::vector<double> marginal_;  ///< by EngineIndex: of one more second of work
};

}  // namespace

void even_out(std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
              const optimizer::BuiltProblem& built, const optimizer::Plan& published) {
  if (std::ranges::any_of(snapshots, [](const auto& s) { return !s.limits.empty(); }))
    Marginals(snapshots, facts, built, published).even_out_rows();
}

void price_limits(std::vector<schema::RoutingSnapshot>& snapshots, const Facts& facts,
                  const optimizer::BuiltProblem& built, const optimizer::Plan& published) {
  if (facts.policy->limits_rows()) Marginals(snapshots, facts, built, published).price_rows();
}

}  // namespace signalbox::global_optimizer
