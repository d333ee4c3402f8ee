#include "optimizer/solve/interior.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "optimizer/model/plan.hpp"
#include "optimizer/solve/bound.hpp"

namespace signalbox::optimizer {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
/// How far a step goes towards the nearest bound.
constexpr double damping = 0.95;
/// Load of the ceiling at which the search begins, and the share of each row's demand that is refused there at least.
constexpr double first_fill = 0.6, first_refusal = 0.05;
/// The pairs' kinds: what the flow is beyond the reference, what of the reference is kept, what is refused.
enum class Kind : std::uint8_t { pair, kept, refused };

/// A direction in all unknowns.
struct Step {
  std::vector<double> x, price, level, load, rent;
};

class Interior {
 public:
  Interior(const Problem& problem, const InteriorOptions& options)
      : problem_(problem), options_(options), bound_(problem) {
    list_columns();
    list_by_engine();
    start();
  }

  InteriorPoint run() {
    InteriorPoint best = point();
    best.bound = -infinite;
    double objective = infinite;
    for (std::uint32_t i = 0;; ++i) {
      const double bound = bound_.value(price_by_engine());
      if (bound > best.bound) best.bound = bound, best.price = price_by_engine();
      InteriorPoint here = point();
      if (const double cost = cost_of(here); cost < objective) {
        objective = cost;
        best.flow_per_s = std::move(here.flow_per_s);
        best.shed_per_s = std::move(here.shed_per_s);
      }
      best.iterations = i;
      if (objective - best.bound <= options_.target_gap * worth_of(problem_, best.bound, best.shed_per_s))
        break;
      if (i == options_.max_iterations || !advance()) break;
    }
    return best;
  }

 private:
  void add(std::uint32_t engine, double cost, double work, double most, Kind kind, std::uint32_t origin) {
    engine_.push_back(engine);
    cost_.push_back(cost);
    work_.push_back(work);
    most_.push_back(most);
    kind_.push_back(kind);
    origin_.push_back(origin);
  }

  /// Rows without demand have no columns. Refusing needs no engine: it is a column of no work on one more engine, which is free.
  void list_columns() {
    const std::size_t engines = problem_.engines.size();
    const bool churn = problem_.churn_cost_s > 0.0 && !problem_.reference_per_s.empty();
    for (std::uint32_t s = 0; s < problem_.sources.size(); ++s) {
      const Source& source = problem_.sources[s];
      if (source.demand_per_s <= 0.0) continue;
      row_source_.push_back(s);
      begin_.push_back(static_cast<std::uint32_t>(engine_.size()));
      for (std::uint32_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
        const Pair& pair = problem_.pairs[i];
        if (problem_.engines[pair.engine.at()].curve.ceiling <= 0.0) continue;
        add(pair.engine.value, pair.cost_s, pair.work_s, infinite, Kind::pair, i);
        const double reference = churn ? std::min(problem_.reference_per_s[i], source.demand_per_s) : 0.0;
        if (reference > 1e-9 * source.demand_per_s)
          add(pair.engine.value, pair.cost_s - problem_.churn_cost_s, pair.work_s, reference, Kind::kept, i);
      }
      const auto nobody = static_cast<std::uint32_t>(engines);
      if (source.floor_fraction > 0.0) {
        add(nobody, source.shed_cost_s, 0.0,
            std::max(source.demand_per_s * (1.0 - source.floor_fraction), 1e-9 * source.demand_per_s),
            Kind::refused, s);
        add(nobody, source.floor_shed_cost_s, 0.0, infinite, Kind::refused, s);
      } else {
        add(nobody, source.shed_cost_s, 0.0, infinite, Kind::refused, s);
      }
    }
    begin_.push_back(static_cast<std::uint32_t>(engine_.size()));
    rows_ = row_source_.size();
  }

  void list_by_engine() {
    const std::size_t engines = problem_.engines.size();
    engine_begin_.assign(engines + 2, 0);
    for (const std::uint32_t e : engine_) ++engine_begin_[e + 1];
    for (std::size_t e = 0; e <= engines; ++e) engine_begin_[e + 1] += engine_begin_[e];
    by_engine_.resize(engine_begin_[engines]);
    std::vector<std::uint32_t> next(engine_begin_);
    for (std::uint32_t r = 0; r < rows_; ++r)
      for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k)
        if (engine_[k] < engines) by_engine_[next[engine_[k]]++] = {r, k};
  }

  /// Well inside all bounds: every engine part full, every row part refused, levels well below the cheapest column.
  void start() {
    const std::size_t engines = problem_.engines.size(), columns = engine_.size();
    price_.assign(engines + 1, 0.0);
    load_.assign(engines, 0.0);
    rent_.assign(engines, 0.0);
    for (std::size_t e = 0; e < engines; ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling > 0.0) price_[e] = curve.marginal(first_fill * curve.ceiling);
    }
    x_.assign(columns, 0.0);
    slack_.assign(columns, infinite);
    bar_.assign(columns, 0.0);
    level_.assign(rows_, 0.0);
    for (std::size_t r = 0; r < rows_; ++r) spread(r);
    std::vector<double> full(engines + 1, 1.0);
    for (std::size_t k = 0; k < columns; ++k)
      if (engine_[k] < engines) load_[engine_[k]] += work_[k] * x_[k];
    for (std::size_t e = 0; e < engines; ++e)
      if (load_[e] > 0.0) full[e] = std::min(1.0, first_fill * problem_.engines[e].curve.ceiling / load_[e]);
    for (std::size_t r = 0; r < rows_; ++r) {
      double served = 0.0;
      std::uint32_t last = begin_[r + 1] - 1;
      for (std::uint32_t k = begin_[r]; k < last; ++k) served += x_[k] *= full[engine_[k]];
      x_[last] = std::max(demand(r) - served, 1e-3 * demand(r));
    }
    for (std::size_t k = 0; k < columns; ++k)
      if (std::isfinite(most_[k])) slack_[k] = most_[k] - x_[k];
    for (std::size_t r = 0; r < rows_; ++r) set_level(r);
    count_loads();
    for (std::size_t e = 0; e < engines; ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling > 0.0) rent_[e] = std::max(price_[e] - curve.marginal(load_[e]), 1e-3 * price_[e]);
    }
  }

  /// Spreads a row by what its engines can do; bounded columns are half full.
  void spread(std::size_t r) {
    double room = 0.0;
    for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k)
      if (kind_[k] == Kind::pair) room += problem_.engines[engine_[k]].curve.ceiling / work_[k];
    const double flow = (1.0 - first_refusal) * demand(r);
    double bounded = 0.0;
    for (std::uint32_t k = begin_[r]; k + 1 < begin_[r + 1]; ++k)
      if (std::isfinite(most_[k])) bounded += 0.5 * most_[k];
    const double share = bounded > 0.0 ? std::min(1.0, 0.5 * flow / bounded) : 0.0;
    for (std::uint32_t k = begin_[r]; k + 1 < begin_[r + 1]; ++k)
      x_[k] = std::isfinite(most_[k])
                  ? 0.5 * share * most_[k]
                  : (flow - share * bounded) * problem_.engines[engine_[k]].curve.ceiling / work_[k] / room;
  }

  void set_level(std::size_t r) {
    double least = infinite;
    for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k)
      least = std::min(least, cost_[k] + work_[k] * price_[engine_[k]]);
    const double below = 0.3 * std::max(std::abs(least), 1e-6);
    level_[r] = least - below;
    for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k)
      if (std::isfinite(most_[k])) bar_[k] = below * x_[k] / slack_[k] + 1e-9 * below;
  }

  double demand(std::size_t r) const { return problem_.sources[row_source_[r]].demand_per_s; }

  void count_loads() {
    std::fill(load_.begin(), load_.end(), 0.0);
    for (std::size_t k = 0; k < engine_.size(); ++k)
      if (engine_[k] < load_.size()) load_[engine_[k]] += work_[k] * x_[k];
  }

  /// Reduced costs at the current prices and levels.
  void price_columns() {
    s_.resize(engine_.size());
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k)
        s_[k] = cost_[k] + work_[k] * price_[engine_[k]] - level_[r] + bar_[k];
  }

  /// Weights of the columns and engines in Newton's system, and its factor.
  bool factorise() {
    const std::size_t engines = load_.size();
    theta_.resize(engine_.size());
    for (std::size_t k = 0; k < theta_.size(); ++k)
      theta_[k] = bar_[k] > 0.0 ? 1.0 / (s_[k] / x_[k] + bar_[k] / slack_[k]) : x_[k] / s_[k];
    bend_.assign(engines, 0.0);
    diagonal_.assign(engines, 1.0);
    matrix_.setZero(static_cast<Eigen::Index>(rows_), static_cast<Eigen::Index>(rows_));
    for (std::size_t r = 0; r < rows_; ++r) {
      double sum = 0.0;
      for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k) sum += theta_[k];
      matrix_(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(r)) = sum * (1.0 + 1e-13);
    }
    for (std::size_t e = 0; e < engines; ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling <= 0.0) continue;
      bend_[e] = 1.0 / (curve.curvature(load_[e]) + rent_[e] / (curve.ceiling - load_[e]));
      double sum = bend_[e];
      for (std::uint32_t i = engine_begin_[e]; i < engine_begin_[e + 1]; ++i) {
        const std::uint32_t k = by_engine_[i].column;
        sum += theta_[k] * work_[k] * work_[k];
      }
      diagonal_[e] = sum;
      eliminate(e, 1.0 / sum);
    }
    scale_ = matrix_.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    matrix_ = scale_.asDiagonal() * matrix_ * scale_.asDiagonal();
    factor_.compute(matrix_);
    return factor_.info() == Eigen::Success;
  }

  void eliminate(std::size_t e, double inverse) {
    for (std::uint32_t i = engine_begin_[e]; i < engine_begin_[e + 1]; ++i) {
      const auto [row, k] = by_engine_[i];
      const double value = theta_[k] * work_[k] * inverse;
      double* column = &matrix_(0, row);
      for (std::uint32_t j = i; j < engine_begin_[e + 1]; ++j) {
        const auto [other, l] = by_engine_[j];
        column[other] -= value * theta_[l] * work_[l];
        if (other == row && j > i) column[other] -= value * theta_[l] * work_[l];
      }
    }
  }

  /// Newton's direction for these products of columns, bounded columns and engines with their multipliers.
  bool direction(const std::vector<double>& xs, const std::vector<double>& tr,
                 const std::vector<double>& engine_product, Step& step) {
    const std::size_t engines = load_.size(), columns = engine_.size();
    step.x.resize(columns);
    pull_.assign(engines + 1, 0.0);
    Eigen::VectorXd& levels = right_;
    levels.resize(static_cast<Eigen::Index>(rows_));
    for (std::size_t r = 0; r < rows_; ++r) {
      double sum = 0.0, total = 0.0;
      for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k) {
        double want = xs[k] / x_[k] - (s_[k] - bar_[k]);
        if (bar_[k] > 0.0) want -= tr[k] / slack_[k];
        step.x[k] = theta_[k] * want;
        sum += step.x[k];
        total += x_[k];
        pull_[engine_[k]] += work_[k] * step.x[k];
      }
      levels[static_cast<Eigen::Index>(r)] = (demand(r) - total) - sum;
    }
    for (std::size_t e = 0; e < engines; ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling <= 0.0) continue;
      pull_[e] +=
          (curve.marginal(load_[e]) + engine_product[e] / (curve.ceiling - load_[e]) - price_[e]) * bend_[e];
      const double share = pull_[e] / diagonal_[e];
      for (std::uint32_t i = engine_begin_[e]; i < engine_begin_[e + 1]; ++i) {
        const auto [row, k] = by_engine_[i];
        levels[row] += theta_[k] * work_[k] * share;
      }
    }
    levels = scale_.asDiagonal() * factor_.solve(scale_.asDiagonal() * levels);
    if (!levels.allFinite()) return false;
    step.level.assign(levels.data(), levels.data() + levels.size());
    step.price.assign(engines + 1, 0.0);
    step.load.assign(engines, 0.0);
    step.rent.assign(engines, 0.0);
    for (std::size_t e = 0; e < engines; ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling <= 0.0) continue;
      double sum = pull_[e];
      for (std::uint32_t i = engine_begin_[e]; i < engine_begin_[e + 1]; ++i) {
        const auto [row, k] = by_engine_[i];
        sum += theta_[k] * work_[k] * step.level[row];
      }
      step.price[e] = sum / diagonal_[e];
      const double room = curve.ceiling - load_[e];
      step.load[e] =
          (step.price[e] - (curve.marginal(load_[e]) + engine_product[e] / room - price_[e])) * bend_[e];
      step.rent[e] = engine_product[e] / room - rent_[e] + rent_[e] / room * step.load[e];
    }
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k)
        step.x[k] -= theta_[k] * (work_[k] * step.price[engine_[k]] - step.level[r]);
    return true;
  }

  double bar_step(const Step& step, const std::vector<double>& tr, std::size_t k) const {
    return tr[k] / slack_[k] - bar_[k] + bar_[k] / slack_[k] * step.x[k];
  }

  /// How far the flows, and the prices, may follow the direction.
  void lengths(const Step& step, const std::vector<double>& tr, double& primal, double& dual) const {
    primal = dual = 1.0 / damping;
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k) {
        double ds = work_[k] * step.price[engine_[k]] - step.level[r];
        if (step.x[k] < 0.0) primal = std::min(primal, -x_[k] / step.x[k]);
        if (bar_[k] > 0.0) {
          const double dr = bar_step(step, tr, k);
          ds += dr;
          if (dr < 0.0) dual = std::min(dual, -bar_[k] / dr);
          if (step.x[k] > 0.0) primal = std::min(primal, slack_[k] / step.x[k]);
        }
        if (ds < 0.0) dual = std::min(dual, -s_[k] / ds);
      }
    for (std::size_t e = 0; e < load_.size(); ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling <= 0.0) continue;
      if (step.load[e] > 0.0) primal = std::min(primal, (curve.ceiling - load_[e]) / step.load[e]);
      if (step.rent[e] < 0.0) dual = std::min(dual, -rent_[e] / step.rent[e]);
    }
    primal = std::min(1.0, damping * primal);
    dual = std::min(1.0, damping * dual);
  }

  bool advance() {
    const std::size_t columns = engine_.size(), engines = load_.size();
    price_columns();
    if (!factorise()) return false;
    std::vector<double>&xs = xs_, &tr = tr_, &product = product_;
    xs.assign(columns, 0.0), tr.assign(columns, 0.0), product.assign(engines, 0.0);
    Step& step = step_;
    if (!direction(xs, tr, product, step)) return false;
    double primal = 0.0, dual = 0.0;
    lengths(step, tr, primal, dual);
    double now = 0.0, then = 0.0;
    std::size_t count = 0;
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::uint32_t k = begin_[r]; k < begin_[r + 1]; ++k) {
        double ds = work_[k] * step.price[engine_[k]] - step.level[r];
        if (bar_[k] > 0.0) {
          const double dr = bar_step(step, tr, k);
          ds += dr;
          now += slack_[k] * bar_[k], ++count;
          then += (slack_[k] - primal * step.x[k]) * (bar_[k] + dual * dr);
          tr[k] = step.x[k] * dr;
        }
        now += x_[k] * s_[k], ++count;
        then += (x_[k] + primal * step.x[k]) * (s_[k] + dual * ds);
        xs[k] = -step.x[k] * ds;
      }
    for (std::size_t e = 0; e < engines; ++e) {
      const CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling <= 0.0) continue;
      const double room = curve.ceiling - load_[e];
      now += room * rent_[e], ++count;
      then += (room - primal * step.load[e]) * (rent_[e] + dual * step.rent[e]);
      product[e] = step.load[e] * step.rent[e];
    }
    if (!(now > 0.0)) return false;
    const double ratio = std::clamp(then / now, 0.0, 1.0);
    const double centre = ratio * ratio * ratio * now / static_cast<double>(count);
    for (std::size_t k = 0; k < columns; ++k) xs[k] += centre, tr[k] += centre;
    for (double& p : product) p += centre;
    if (!direction(xs, tr, product, step)) return false;
    lengths(step, tr, primal, dual);
    move(step, tr, primal, dual);
    return true;
  }

  void move(const Step& step, const std::vector<double>& tr, double primal, double dual) {
    for (std::size_t k = 0; k < x_.size(); ++k) {
      if (bar_[k] > 0.0) {
        bar_[k] += dual * bar_step(step, tr, k);
        slack_[k] -= primal * step.x[k];
      }
      x_[k] += primal * step.x[k];
    }
    for (std::size_t r = 0; r < rows_; ++r) level_[r] += dual * step.level[r];
    for (std::size_t e = 0; e < load_.size(); ++e) {
      price_[e] += dual * step.price[e];
      rent_[e] += dual * step.rent[e];
    }
    count_loads();
  }

  /// Prices that the bound understands.
  std::vector<double> price_by_engine() const {
    std::vector<double> price(load_.size(), infinite);
    for (std::size_t e = 0; e < price.size(); ++e)
      if (problem_.engines[e].curve.ceiling > 0.0)
        price[e] = std::max(price_[e], problem_.engines[e].curve.q);
    return price;
  }

  InteriorPoint point() const {
    InteriorPoint out;
    out.price = price_by_engine();
    out.flow_per_s.assign(problem_.pairs.size(), 0.0);
    out.shed_per_s.assign(problem_.sources.size(), 0.0);
    for (std::size_t k = 0; k < x_.size(); ++k)
      (kind_[k] == Kind::refused ? out.shed_per_s : out.flow_per_s)[origin_[k]] += x_[k];
    return out;
  }

  double cost_of(const InteriorPoint& at) const {
    const auto terms = objective_terms(problem_, at.flow_per_s, at.shed_per_s, load_);
    double sum = 0.0;
    for (const double term : terms) sum += term;
    return sum;
  }

  const Problem& problem_;
  const InteriorOptions& options_;
  Bound bound_;
  std::size_t rows_ = 0;
  std::vector<std::uint32_t> row_source_, begin_, engine_, origin_;
  std::vector<Kind> kind_;
  std::vector<double> cost_, work_, most_;
  struct Place {
    std::uint32_t row, column;
  };
  std::vector<std::uint32_t> engine_begin_;
  std::vector<Place> by_engine_;  ///< of each engine its columns, by row

  std::vector<double> x_, s_, slack_,
      bar_;  ///< by column: flow, reduced cost, room to its bound and that one's multiplier
  std::vector<double> price_, load_, rent_, level_;
  std::vector<double> theta_, bend_, diagonal_, pull_, xs_, tr_, product_;
  Step step_;
  Eigen::MatrixXd matrix_;
  Eigen::VectorXd scale_, right_;
  Eigen::LLT<Eigen::MatrixXd> factor_;
};

}  // namespace

double worth_of(const Problem& problem, double bound, std::span<const double> shed_per_s) {
  constexpr double least_share = 1e-4;
  const double refused = shed_per_s.empty() ? 0.0 : refused_cost(problem, shed_per_s);
  return std::max({std::abs(bound) - refused, least_share * std::abs(bound), 1e-15});
}

InteriorPoint interior_point(const Problem& problem, const InteriorOptions& options) {
  return Interior(problem, options).run();
}

}  // namespace signalbox::optimizer
