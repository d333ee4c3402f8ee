#include "optimizer/solve/newton.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::optimizer {
namespace {

/// Where an engine's load does not follow its price (idle, or at its ceiling) the dual is straight; this share of the slope of
/// a half-loaded engine keeps the step finite there.
constexpr double least_slope = 0.02;
/// A price is at most doubled, or halved, by one step.
constexpr double most_down = 0.5, most_up = 1.0;
constexpr double most_temperatures = 4.0;
constexpr double solve_tolerance = 1e-2;
constexpr std::uint32_t most_products = 60, most_trials = 6;

/// The slope of the load that an engine offers at a price, kept from 0.
double offer_slope(const CongestionCurve& curve, double price) {
  const double half = 0.5 * curve.capacity / std::max(curve.q, price);
  const double load = curve.load_at(price);
  if (load <= 0.0 || load >= curve.ceiling) return least_slope * half;
  return half * std::sqrt(curve.q / price);
}

}  // namespace

Newton::Newton(const Problem& problem, const std::vector<std::uint32_t>& group_of)
    : problem_(problem), groups_(problem, group_of) {
  const std::size_t count = problem.engines.size();
  for (std::size_t e = 0; e < count; ++e)
    if (problem.engines[e].curve.ceiling > 0.0) engines_.push_back(static_cast<std::uint32_t>(e));
  for (auto* column : {&excess_, &diagonal_, &scaled_, &step_, &residual_, &direction_, &product_, &trial_,
                       &strongest_, &most_, &least_})
    column->assign(count, 0.0);
}

NewtonResult Newton::balance(Proximal& rows, const NewtonOptions& options, std::vector<double>& price) {
  NewtonResult result;
  measure(rows, price);
  while (unbalanced_ > options.tolerance && result.steps < options.max_steps) {
    build(rows, price);
    result.products += solve(rows);
    ++result.steps;
    shorten(rows);
    if (!search(rows, price)) break;
  }
  result.unbalanced = unbalanced_;
  return result;
}

/// The rows' answer, and by how much it exceeds what the engines offer at these prices.
void Newton::measure(Proximal& rows, const std::vector<double>& price) {
  rows.answer(price);
  double wrong = 0.0, all = 0.0;
  for (const std::uint32_t e : engines_) {
    excess_[e] = rows.work()[e] - problem_.engines[e].curve.load_at(price[e]);
    wrong += std::abs(excess_[e]) * price[e];
    all += rows.work()[e] * price[e];
  }
  unbalanced_ = all > 0.0 ? wrong / all : 0.0;
}

void Newton::build(const Proximal& rows, const std::vector<double>& price) {
  free_.clear();
  for (const std::uint32_t e : engines_) {
    step_[e] = direction_[e] = 0.0;
    if (price[e] > problem_.engines[e].curve.q || excess_[e] > 0.0) free_.push_back(e);
  }
  for (const std::uint32_t e : free_)
    diagonal_[e] = rows.stiffness()[e] + offer_slope(problem_.engines[e].curve, price[e]);
  inverse_slope_.clear();
  for (const Proximal::Part& part : rows.parts())
    inverse_slope_.push_back(part.slope > 0.0 ? 1.0 / part.slope : 0.0);
  groups_.build(rows, diagonal_, free_);
}

void Newton::apply(const Proximal& rows, const std::vector<double>& in, std::vector<double>& out) const {
  for (const std::uint32_t e : free_) out[e] = diagonal_[e] * in[e];
  const auto& pulls = rows.pulls();
  for (std::size_t p = 0; p < inverse_slope_.size(); ++p) {
    const std::uint32_t first = rows.parts()[p].begin, last = rows.parts()[p].end;
    double sum = 0.0;
    for (std::uint32_t i = first; i < last; ++i) sum += pulls[i].value * in[pulls[i].engine];
    sum *= inverse_slope_[p];
    for (std::uint32_t i = first; i < last; ++i) out[pulls[i].engine] -= pulls[i].value * sum;
  }
}

/// Conjugate gradients for  Hessian * step = excess.
std::uint32_t Newton::solve(const Proximal& rows) {
  double rho = 0.0;
  residual_ = excess_;
  groups_.apply(residual_, direction_);
  for (const std::uint32_t e : free_) rho += residual_[e] * direction_[e];
  const double enough = solve_tolerance * solve_tolerance * rho;
  for (std::uint32_t i = 1; i <= most_products; ++i) {
    apply(rows, direction_, product_);
    double curvature = 0.0;
    for (const std::uint32_t e : free_) curvature += direction_[e] * product_[e];
    if (!(curvature > 0.0)) return i;
    const double length = rho / curvature;
    double next = 0.0;
    for (const std::uint32_t e : free_) {
      step_[e] += length * direction_[e];
      residual_[e] -= length * product_[e];
    }
    groups_.apply(residual_, scaled_);
    for (const std::uint32_t e : free_) next += residual_[e] * scaled_[e];
    if (next <= enough) return i;
    const double ratio = next / rho;
    rho = next;
    for (const std::uint32_t e : free_) direction_[e] = scaled_[e] + ratio * direction_[e];
  }
  return most_products;
}

/// The softmin is nearly linear only within a temperature: no engine's price moves further than a few, beside the level of the row that
/// pulls it most.
void Newton::shorten(const Proximal& rows) {
  for (const std::uint32_t e : free_) strongest_[e] = 0.0;
  const auto& pulls = rows.pulls();
  for (std::size_t p = 0; p < inverse_slope_.size(); ++p) {
    const std::uint32_t first = rows.parts()[p].begin, last = rows.parts()[p].end;
    double level = 0.0;
    for (std::uint32_t i = first; i < last; ++i) level += pulls[i].value * step_[pulls[i].engine];
    level *= inverse_slope_[p];
    for (std::uint32_t i = first; i < last; ++i) {
      const std::uint32_t e = pulls[i].engine;
      const double strength = pulls[i].value * pulls[i].work_s;
      if (strength <= strongest_[e]) continue;
      strongest_[e] = strength;
      const double middle = level / pulls[i].work_s,
                   reach = most_temperatures * rows.temperature(rows.parts()[p].source) / pulls[i].work_s;
      least_[e] = middle - reach, most_[e] = middle + reach;
    }
  }
  for (const std::uint32_t e : free_)
    if (strongest_[e] > 0.0) step_[e] = std::clamp(step_[e], least_[e], most_[e]);
}

double Newton::along_step() const {
  double sum = 0.0;
  for (const std::uint32_t e : engines_) sum += excess_[e] * step_[e];
  return sum;
}

/// Follows the step as long as the dual, which is concave, rises along it or falls only slightly at its end.
bool Newton::search(Proximal& rows, std::vector<double>& price) {
  const double at_start = along_step();
  if (!(at_start > 0.0)) return false;
  double length = 1.0;
  for (std::uint32_t i = 0; i < most_trials; ++i) {
    trial_ = price;
    for (const std::uint32_t e : engines_) {
      const double move = std::clamp(length * step_[e], -most_down * price[e], most_up * price[e]);
      trial_[e] = std::max(price[e] + move, problem_.engines[e].curve.q);
    }
    measure(rows, trial_);
    const double at_end = along_step();
    if (at_end >= -0.3 * at_start) {
      price.swap(trial_);
      return true;
    }
    length *= std::clamp(at_start / (at_start - at_end), 0.1, 0.6);
  }
  measure(rows, price);
  return false;
}

}  // namespace signalbox::optimizer
