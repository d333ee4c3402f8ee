#include "optimizer/model/capped.hpp"

#include <algorithm>
#include <limits>

namespace signalbox::optimizer {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double negligible = 1e-9;
constexpr std::uint32_t unknown = UINT32_MAX;

}  // namespace

bool lies_in(const ShareCap& inner, const ShareCap& outer) {
  std::vector<std::uint32_t> home;
  for (std::size_t e = 0; e < inner.group.size(); ++e) {
    const std::uint32_t g = inner.group[e];
    if (g >= home.size()) home.resize(g + 1, unknown);
    if (home[g] == unknown) home[g] = outer.group[e];
    if (home[g] != outer.group[e]) return false;
  }
  return true;
}

std::vector<ShareCap> nested(std::vector<ShareCap> caps) {
  std::vector<ShareCap> out;
  for (ShareCap& cap : caps)
    if (out.empty() || lies_in(out.back(), cap)) out.push_back(std::move(cap));
  return out;
}

CapRoom::CapRoom(const Problem& problem) : problem_(&problem) {
  if (problem.caps.empty()) return;
  for (const ShareCap& cap : problem.caps)
    left_.emplace_back(cap.group.empty() ? 0 : *std::ranges::max_element(cap.group) + 1, 0.0);
  binds_.assign(problem.sources.size(), 1);
  for (std::size_t s = 0; s < binds_.size(); ++s) binds_[s] = fits(s);
  source_ = SIZE_MAX;
}

bool CapRoom::fits(std::size_t s) {
  const Source& source = problem_->sources[s];
  open(s);
  double open_rate = source.demand_per_s;
  for (const Pair& pair : problem_->pairs_of(source)) {
    if (open_rate <= 0.0) break;
    if (problem_->engines[pair.engine.at()].curve.ceiling <= 0.0) continue;
    const double rate = std::min(open_rate, left(pair.engine.value));
    take(pair.engine.value, rate);
    open_rate -= rate;
  }
  return open_rate <= negligible * source.demand_per_s;
}

void CapRoom::open(std::size_t source) {
  source_ = source;
  bound_ = binds(source);
  if (!bound_) return;
  const Source& of = problem_->sources[source];
  for (std::size_t l = 0; l < left_.size(); ++l)
    for (const Pair& pair : problem_->pairs_of(of))
      left_[l][group(l, pair.engine.value)] = problem_->caps[l].most * of.demand_per_s;
}

double CapRoom::left(std::uint32_t engine) const {
  double out = infinite;
  if (engine == nobody || !bound_) return out;
  for (std::size_t l = 0; l < left_.size(); ++l) out = std::min(out, left_[l][group(l, engine)]);
  return std::max(0.0, out);
}

void CapRoom::take_from(std::size_t level, std::uint32_t engine, double rate) {
  if (engine == nobody || !bound_) return;
  for (std::size_t l = level; l < left_.size(); ++l) left_[l][group(l, engine)] -= rate;
}

bool CappedRows::dearer(const Way& a, const Way& b) {
  return a.cost_s != b.cost_s ? a.cost_s > b.cost_s : a.engine > b.engine;
}

CappedRow CappedRows::value(std::size_t s, std::span<const double> price) {
  const Source& source = problem_.sources[s];
  room_.open(s);
  ways_.clear();
  const bool floor = source.floor_fraction > 0.0;
  if (floor) ways_.push_back({source.floor_shed_cost_s, infinite, CapRoom::nobody});
  ways_.push_back({source.shed_cost_s, floor ? source.demand_per_s * (1.0 - source.floor_fraction) : infinite,
                   CapRoom::nobody});
  CappedRow out;
  for (std::uint32_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
    out.cost += add_pair(i, price);
  std::ranges::make_heap(ways_, dearer);
  for (double open = source.demand_per_s; open > 0.0;) {
    std::ranges::pop_heap(ways_, dearer);
    const Way way = ways_.back();
    ways_.pop_back();
    const double rate = std::min({open, way.most_per_s, room_.left(way.engine)});
    room_.take(way.engine, rate);
    open -= rate;
    out.cost += rate * way.cost_s;
    if (rate > negligible * source.demand_per_s) out.last = way.cost_s;
  }
  return out;
}

/// Adds the ways of a pair; what its churn costs if all of it is paid.
double CappedRows::add_pair(std::uint32_t i, std::span<const double> price) {
  const Pair& pair = problem_.pairs[i];
  const bool churns = problem_.churn_cost_s > 0.0 && !problem_.reference_per_s.empty();
  const double reference = churns ? problem_.reference_per_s[i] : 0.0;
  if (problem_.engines[pair.engine.at()].curve.ceiling > 0.0) {
    const double cost = pair.cost_s + pair.work_s * price[pair.engine.at()];
    ways_.push_back({cost, infinite, pair.engine.value});
    if (reference > 0.0) ways_.push_back({cost - problem_.churn_cost_s, reference, pair.engine.value});
  }
  return problem_.churn_cost_s * reference;
}

}  // namespace signalbox::optimizer
