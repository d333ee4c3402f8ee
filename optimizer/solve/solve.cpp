#include "optimizer/solve/solve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "optimizer/solve/bound.hpp"
#include "optimizer/solve/coarse.hpp"
#include "optimizer/solve/interior.hpp"
#include "optimizer/solve/newton.hpp"
#include "optimizer/solve/primal.hpp"
#include "optimizer/solve/proximal.hpp"
#include "optimizer/solve/repair.hpp"

namespace signalbox::optimizer {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Temperatures are shares of what a request costs, in units of the target gap. Each round answers the centre that the one before
/// left, so that the inverses of their temperatures add up. A round that is balanced in few steps is followed by a colder one; one that
/// is not is taken back and tried again at a warmer.
constexpr double first_temperature = 6.0, coldest = 0.3, hottest = 100.0;
constexpr double colder = 0.6, warm_up = 1.5, warmer = 3.0;
constexpr std::uint32_t few_steps = 3;
/// A warm start that is not certified at once is nearly balanced: one step of a round this hot, in which requests of all rows may move
/// far, is mostly enough, at a fifth of what a balanced round costs.
constexpr double hot = 48.0;
/// Its columns are those of the last plan and what is nearer than so many temperatures.
constexpr double warm_reach = 5.0;
/// Flows whose loads are off by more than this share of their value are no centre.
constexpr double balanced_enough = 5e-3;
/// A pair is worth a column when it costs at most this many temperatures, of which none counts as hotter than this, more than its row's
/// cheapest.
constexpr double column_margin = 1.5, widest = 12.0;
/// A problem with this few rows is solved as a whole by the interior-point method; a larger one begins with an image of about
/// that size.
constexpr std::size_t few_rows = 100;
/// Up to this many rows the interior-point method is what remains when the rounds end without a certificate.
constexpr std::size_t most_rows = 400;
/// It aims at this share of the target gap, so that rounding and repair have room.
constexpr double inside_share = 0.5;
/// Flows below this share of their row's demand, in units of the target gap, are dropped.
constexpr double dust = 0.1;
/// With a gap this many times the target, old prices are given up for those of the image.
constexpr double hopeless = 3.0;
/// When this many rounds in a row close less than this share of the target gap each, they are the last.
constexpr std::uint32_t most_stalled = 4;
constexpr double stalled_share = 0.02;
/// Sweeps that follow the rounds for few rows within caps.
constexpr std::uint32_t most_sweeps = 200;
/// The last repair lets places change hands down a chain of engines this often. Those before cost too much for that.
constexpr int settling_rounds = 8;

double relative_gap(double objective, double bound) {
  return (objective - bound) / std::max(std::abs(bound), 1e-9);
}

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options)
      : problem_(problem),
        options_(options),
        primal_(problem),
        bound_(problem),
        rows_(problem, primal_.churn() ? problem.churn_cost_s : 0.0) {}

  Plan run(const WarmState& warm) {
    if (warm.price.size() == problem_.engines.size() && warm.flow_per_s.size() == problem_.pairs.size())
      start_warm(warm);
    warm_ = !hopeless_still();
    if (!warm_) start_cold();
    if (!certified() && (!whole_ || capped())) improve();
    if (!certified() && capped() && rows_with_demand() <= most_rows) sweep_on();
    if (!done() && !whole_ && rows_with_demand() <= most_rows) solve_inside();
    settle_refusals();
    return finish();
  }

 private:
  void start_warm(const WarmState& warm) {
    std::vector<double> price = first_prices();
    for (std::size_t e = 0; e < price.size(); ++e)
      if (std::isfinite(price[e]) && std::isfinite(warm.price[e]) && warm.price[e] > 0.0)
        price[e] = warm.price[e];
    primal_.start_from(warm.flow_per_s, warm.shed_per_s, dust * options_.target_gap);
    take_prices(price, warm_reach);
    balance();
  }

  /// Where the demand has moved far, old prices are a worse start than those of a small image of the new problem.
  bool hopeless_still() const {
    return !(relative_gap(best_objective_, best_bound_) <= hopeless * options_.target_gap);
  }

  std::size_t rows_with_demand() const {
    return static_cast<std::size_t>(std::count_if(problem_.sources.begin(), problem_.sources.end(),
                                                  [](const Source& s) { return s.demand_per_s > 0.0; }));
  }

  const std::vector<std::uint32_t>& groups() {
    if (group_of_.empty()) group_of_ = group_sources(problem_, few_rows);
    return group_of_;
  }

  void start_cold() {
    if (few()) return solve_inside();
    const Coarse image = coarsen(problem_, groups());
    InteriorPoint point = interior_point(image.problem, {options_.target_gap});
    plan_.dual_iterations += point.iterations;
    std::vector<double> flow, shed;
    image.share_out(problem_, point.flow_per_s, point.shed_per_s, flow, shed);
    primal_.start_from(flow, shed, dust * options_.target_gap);
    take_prices(point.price, first_temperature);
  }

  void solve_inside() {
    whole_ = true;
    InteriorPoint point = interior_point(problem_, {inside_share * options_.target_gap});
    plan_.dual_iterations += point.iterations;
    offer_price(point.price, point.bound);
    primal_.start_from(point.flow_per_s, point.shed_per_s, 0.0);
    if (!capped()) offer_flows();  // that method knows no caps
    primal_.start_from(point.flow_per_s, point.shed_per_s, dust * options_.target_gap);
    if (capped()) take_prices(point.price, first_temperature);
    balance();
    if (!certified()) plan_.stop = Stop::stalled;
  }

  /// The exact dual value of these prices; adds the columns that they make cheap.
  void take_prices(const std::vector<double>& price, double temperature) {
    offer_price(price, primal_.price_and_extend(
                           price, column_margin * std::min(temperature, widest) * options_.target_gap,
                           dust * options_.target_gap));
  }

  /// Rounds of the proximal method until the gap is certified: prices balanced near the last flows, columns added at these
  /// prices, flows swept.
  void improve() {
    Newton newton(problem_, groups());
    double temperature = warm_ ? hot : first_temperature;
    std::uint32_t stalled = 0;
    for (std::uint32_t round = 0; round < std::max(1u, options_.max_rounds); ++round) {
      const double bound = best_bound_, objective = best_objective_;
      std::vector<double> price = best_price_;
      rows_.centre(primal_.columns(), primal_.shed_per_s());
      rows_.set_temperature(primal_.cost_shares(temperature * options_.target_gap, best_bound_));
      const bool quick = warm_ && round == 0;
      const NewtonResult result = newton.balance(rows_, {quick ? 1 : options_.dual_iterations}, price);
      plan_.dual_iterations += result.steps;
      if (!quick && result.unbalanced > balanced_enough && temperature < hottest) {
        temperature = std::min(hottest, temperature * warmer);
        offer_price(price, bound_.value(price));
        if (!std::isfinite(best_objective_)) balance();
        continue;
      }
      primal_.columns().flow_per_s = rows_.flow_per_s();
      primal_.shed_per_s() = rows_.shed_per_s();
      primal_.recount_loads();
      take_prices(price, temperature);
      balance();
      if (certified()) return;
      const double progress = (best_bound_ - bound) + (objective - best_objective_);
      stalled = progress > stalled_share * options_.target_gap * std::abs(best_bound_) ? 0 : stalled + 1;
      if (stalled == most_stalled) {
        plan_.stop = Stop::stalled;
        return;
      }
      if (quick)
        temperature = first_temperature;
      else if (result.unbalanced > NewtonOptions{}.tolerance)
        temperature = std::min(hottest, temperature * warm_up);
      else if (result.steps <= few_steps)
        temperature = std::max(coldest, temperature * colder);
    }
  }

  /// Sweeps alone end at the optimum too, if slowly, and what the engines' users then pay are its prices. That is what is left for few rows
  /// within caps, of which the interior-point method knows nothing.
  void sweep_on() {
    primal_.price_and_extend(best_price_, infinite, dust * options_.target_gap);
    balance();
    for (std::uint32_t i = 0; i < most_sweeps && !certified(); ++i) {
      const std::vector<double> price = primal_.prices_paid();
      offer_price(price, bound_.value(price));
      primal_.engines().set_rents(price);
      primal_.sweep();
      primal_.recount_loads();
      offer_flows();
      ++plan_.sweeps;
    }
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
  /// at all pairs of who is refused, so that no place is left to a source that is cheaper to refuse. It knows nothing of churn: what it finds is
  /// taken only within the gap.
  void settle_refusals() {
    double refused = 0.0;
    for (const double shed : best_flows_.shed_per_s) refused += shed;
    if (refused <= 0.0) return;
    Columns all;
    all.begin.push_back(0);
    std::size_t k = 0;
    for (std::size_t r = 0; r < problem_.sources.size(); ++r) {
      const Source& source = problem_.sources[r];
      const bool complete = best_flows_.shed_per_s[r] > 0.0;
      for (std::uint32_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
        const bool known = k < best_origin_.size() && best_origin_[k] == i;
        const double flow = known ? best_flows_.flow_per_s[k] : 0.0;
        if (complete || flow > 0.0) all.add(problem_, i, flow);
        k += known;
      }
      all.begin.push_back(static_cast<std::uint32_t>(all.pairs.size()));
    }
    Flows flows{all.flow_per_s, best_flows_.shed_per_s, best_flows_.load};
    repair(problem_, all, flows, settling_rounds);
    const double most = std::max(best_objective_, best_bound_ + least_gap());
    if (objective_of(problem_, all, flows) > most) return;
    best_flows_ = std::move(flows);
    best_origin_ = std::move(all.origin);
  }

  bool capped() const { return !problem_.caps.empty(); }

  bool few() const { return rows_with_demand() <= few_rows; }

  /// What is certified of the plan is relative to the whole objective.
  bool certified() {
    if (relative_gap(best_objective_, best_bound_) > options_.target_gap) return false;
    plan_.stop = Stop::certified;
    return true;
  }

  /// The gap up to which flows are exchanged without gain. With few rows what is served is near its own optimum, whatever
  /// refusals cost: the interior-point method makes that cheap.
  double least_gap() const {
    return options_.target_gap * (few() ? worth_of(problem_, best_bound_, best_flows_.shed_per_s)
                                        : std::max(std::abs(best_bound_), 1e-9));
  }

  bool done() { return certified() && best_objective_ - best_bound_ <= least_gap(); }

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
  Proximal rows_;
  std::vector<std::uint32_t> group_of_;  ///< made when it is first needed
  Plan plan_;
  bool warm_ = false;   ///< it goes on from the last plan
  bool whole_ = false;  ///< the interior-point method has solved the whole problem
  std::vector<double> best_price_;
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
