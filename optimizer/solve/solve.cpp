#include "optimizer/solve/solve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "optimizer/solve/aggregate.hpp"
#include "optimizer/solve/bound.hpp"
#include "optimizer/solve/dual.hpp"
#include "optimizer/solve/primal.hpp"
#include "optimizer/solve/repair.hpp"

namespace signalbox::optimizer {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Temperatures are shares of a row's cost. The image of the problem is climbed down to its last, then the
/// whole at `first_whole`.
constexpr std::array<double, 3> image_temperatures{0.02, 0.006, 0.002};
constexpr double first_whole = 1e-3;
/// A pair is worth a column when it costs at most this many temperatures more than its row's cheapest.
constexpr double column_margin = 12.0;
/// The softmin's temperature falls through these shares of the target gap until the gap is certified.
constexpr std::array<double, 3> temperature_shares{0.3, 0.1, 0.03};
/// With a gap this many times the target, old prices are given up for those of the image.
constexpr double hopeless = 3.0;
/// A round that closes less than this share of the target gap is the last.
constexpr double stalled_share = 0.02;
/// The last repair lets places change hands down a chain of engines this often. Those before cost too much for that.
constexpr int settling_rounds = 8;

double relative_gap(double objective, double bound) {
  return (objective - bound) / std::max(std::abs(bound), 1e-9);
}

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options)
      : problem_(problem), options_(options), primal_(problem), bound_(problem) {}

  Plan run(const WarmState& warm) {
    if (warm.price.size() == problem_.engines.size() && warm.flow_per_s.size() == problem_.pairs.size())
      start_warm(warm);
    else
      start_cold();
    if (!done()) improve();
    settle_refusals();
    return finish();
  }

 private:
  void start_warm(const WarmState& warm) {
    std::vector<double> price = first_prices();
    for (std::size_t e = 0; e < price.size(); ++e)
      if (std::isfinite(price[e]) && std::isfinite(warm.price[e]) && warm.price[e] > 0.0)
        price[e] = warm.price[e];
    primal_.start_from(warm.flow_per_s, warm.shed_per_s);
    offer_price(price, primal_.price_and_extend(price, first_margin()));
    balance();
    // Where the demand has moved far, the old prices are a worse start than those of a small image of the new
    // problem.
    if (relative_gap(best_objective_, best_bound_) > hopeless * options_.target_gap) start_cold();
  }

  double first_margin() const { return column_margin * temperature_shares[0] * options_.target_gap; }

  void start_cold() {
    const Problem image = aggregate(problem_);
    std::vector<double> price = water_fill_prices(image, 8);
    for (const double t : image_temperatures) climb(image, whole(image), t, 6, price);
    offer_price(price, bound_.value(price));
    climb(problem_, whole(problem_), first_whole, 4, price);
    const std::vector<double> nothing(problem_.pairs.size(), 0.0);
    primal_.start_from(nothing, {});
    offer_price(price, primal_.price_and_extend(price, first_margin()));
  }

  /// All pairs of a problem, without churn.
  ColumnView whole(const Problem& problem) {
    begin_.clear();
    for (const Source& source : problem.sources) begin_.push_back(source.first_pair);
    begin_.push_back(static_cast<std::uint32_t>(problem.pairs.size()));
    return {problem.pairs, begin_, {}};
  }

  /// Climbs at one temperature until a new metric brings little.
  void climb(const Problem& problem, const ColumnView& view, double relative, int rounds,
             std::vector<double>& price) {
    temperature_ = Bound(problem).source_scales(price);
    for (double& temperature : temperature_) temperature *= relative;
    for (int i = 0; i < rounds; ++i) {
      const Climb done = climb_dual(problem, view, temperature_, options_.dual_iterations, price);
      plan_.dual_iterations += done.iterations;
      if (done.relative_gain < 0.1 * relative) return;
    }
  }

  /// Climbs on the working columns at falling temperatures; at each takes the
  /// softmin's flows and balances them. True once the gap is certified.
  bool descend_temperatures() {
    std::vector<double> price = best_price_;
    for (const double share : temperature_shares) {
      const double relative = share * options_.target_gap;
      climb(problem_, primal_.columns().view(primal_.churn()), relative, 4, price);
      SoftFlows flows = softmin_flows(problem_, primal_.columns().view(primal_.churn()), temperature_, price);
      primal_.columns().flow_per_s = std::move(flows.flow_per_s);
      primal_.shed_per_s() = std::move(flows.shed_per_s);
      primal_.recount_loads();
      offer_price(price, primal_.price_and_extend(price, column_margin * relative));
      balance();
      if (done()) return true;
    }
    return false;
  }

  /// Sweeps over the flows and offers what they become as a plan.
  void balance() {
    primal_.engines().set_rents(best_price_);
    for (std::uint32_t i = 0; i < options_.sweeps_per_round; ++i) {
      primal_.sweep();
      ++plan_.sweeps;
    }
    primal_.recount_loads();
    offer_flows();
  }

  std::vector<double> first_prices() const {
    std::vector<double> price(problem_.engines.size());
    for (std::size_t e = 0; e < price.size(); ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      price[e] = curve.ceiling > 0.0 ? curve.marginal(0.75 * curve.ceiling) : infinite;
    }
    return price;
  }

  void offer_price(const std::vector<double>& price, double value) {
    if (!(value > best_bound_)) return;
    best_bound_ = value;
    best_price_ = price;
  }

  void offer_flows() {
    Flows flows{primal_.columns().flow_per_s, primal_.shed_per_s(), primal_.engines().load};
    repair(problem_, primal_.columns(), flows);
    const double objective = objective_of(problem_, primal_.columns(), flows);
    if (!(objective < best_objective_)) return;
    best_objective_ = objective;
    best_flows_ = std::move(flows);
    best_origin_ = primal_.columns().origin;
  }

  /// Who is refused has no column where its price is too high, though that may be the price of nobody who is served: a last repair looks
  /// at all pairs, so that no place is left to a source that is cheaper to refuse.
  void settle_refusals() {
    double refused = 0.0;
    for (const double shed : best_flows_.shed_per_s) refused += shed;
    if (refused <= 0.0) return;
    Columns all;
    all.begin.push_back(0);
    std::size_t k = 0;
    for (const Source& source : problem_.sources) {
      for (std::uint32_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
        const bool known = k < best_origin_.size() && best_origin_[k] == i;
        all.add(problem_, i, known ? best_flows_.flow_per_s[k] : 0.0);
        k += known;
      }
      all.begin.push_back(static_cast<std::uint32_t>(all.pairs.size()));
    }
    Flows flows{all.flow_per_s, best_flows_.shed_per_s, best_flows_.load};
    repair(problem_, all, flows, settling_rounds);
    best_flows_ = std::move(flows);
    best_origin_ = std::move(all.origin);
  }

  void improve() {
    for (std::uint32_t round = 0; round < options_.max_rounds; ++round) {
      const double bound = best_bound_, objective = best_objective_;
      if (descend_temperatures()) return;
      const double progress = (best_bound_ - bound) + (objective - best_objective_);
      if (progress < stalled_share * options_.target_gap * std::abs(best_bound_)) {
        plan_.stop = Stop::stalled;
        return;
      }
    }
  }

  bool done() {
    if (relative_gap(best_objective_, best_bound_) > options_.target_gap) return false;
    plan_.stop = Stop::certified;
    return true;
  }

  Plan finish() {
    plan_.flow_per_s.assign(problem_.pairs.size(), 0.0);
    for (std::size_t k = 0; k < best_origin_.size(); ++k)
      plan_.flow_per_s[best_origin_[k]] = best_flows_.flow_per_s[k];
    plan_.shed_per_s = std::move(best_flows_.shed_per_s);
    plan_.load = loads_of(problem_, plan_.flow_per_s);
    plan_.terms = objective_terms(problem_, plan_.flow_per_s, plan_.shed_per_s, plan_.load);
    double objective = 0.0;
    for (const double term : plan_.terms) objective += term;
    plan_.certificate = {objective, best_bound_, relative_gap(objective, best_bound_)};
    plan_.source_price_s = bound_.source_prices(best_price_);
    list_binding();
    plan_.price = best_price_;
    for (double& price : plan_.price)
      if (!std::isfinite(price)) price = 0.0;
    return std::move(plan_);
  }

  void list_binding() {
    const auto add = [&](Limit limit, std::size_t row, double value) {
      plan_.binding.push_back({limit, static_cast<std::uint32_t>(row), value});
    };
    for (std::size_t e = 0; e < problem_.engines.size(); ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling <= 0.0 || plan_.load[e] < curve.ceiling * (1.0 - 1e-6)) continue;
      add(Limit::engine_ceiling, e, std::max(0.0, best_price_[e] - curve.marginal(curve.ceiling)));
    }
    for (const bool floor : {false, true})
      for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
        const Source& source = problem_.sources[s];
        const double open = source.demand_per_s * (1.0 - source.floor_fraction);
        const double refused = plan_.shed_per_s[s] - (floor ? open : 0.0);
        if (refused > 1e-6 * source.demand_per_s && (!floor || source.floor_fraction > 0.0))
          add(floor ? Limit::floor : Limit::shed, s, floor ? source.floor_shed_cost_s : source.shed_cost_s);
      }
  }

  const Problem& problem_;
  const SolveOptions& options_;
  Primal primal_;
  Bound bound_;
  Plan plan_;
  std::vector<double> best_price_;
  std::vector<double> temperature_;
  std::vector<std::uint32_t> begin_;
  double best_bound_ = -infinite;
  double best_objective_ = infinite;
  Flows best_flows_;
  std::vector<std::uint32_t> best_origin_;
};

}  // namespace

Result<Plan> solve(const Problem& problem, const SolveOptions& options, const WarmState& warm) {
  if (auto ok = check(problem); !ok) return tl::unexpected(ok.error());
  return Solver(problem, options).run(warm);
}

}  // namespace signalbox::optimizer
