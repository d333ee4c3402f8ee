#include "optimizer/solve/aggregate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "messages/base/rng.hpp"

namespace signalbox::optimizer {
namespace {

/// A hash of the engines that a source may use. A collision of two sets of equal size merges strangers, which
/// worsens the start only.
std::uint64_t engines_hash(const Problem& problem, const Source& source) {
  std::uint64_t hash = source.pair_count;
  for (const Pair& pair : problem.pairs_of(source)) hash = (hash ^ pair.engine.value) * 0x9e3779b97f4a7c15ULL;
  return mix64(hash);
}

}  // namespace

Problem aggregate(const Problem& problem) {
  std::map<std::tuple<std::uint64_t, std::uint32_t, double>, std::vector<std::uint32_t>> groups;
  for (std::uint32_t s = 0; s < problem.sources.size(); ++s) {
    const Source& source = problem.sources[s];
    if (source.demand_per_s > 0.0 && source.pair_count > 0)
      groups[{engines_hash(problem, source), source.pair_count, source.shed_cost_s}].push_back(s);
  }
  Problem image;
  image.engines = problem.engines;
  for (const auto& [key, members] : groups) {
    Source merged = problem.sources[members.front()];
    merged.first_pair = static_cast<std::uint32_t>(image.pairs.size());
    merged.demand_per_s = 0.0;
    merged.floor_fraction = 0.0;
    for (const Pair& pair : problem.pairs_of(problem.sources[members.front()]))
      image.pairs.push_back({pair.engine, 0.0, 0.0});
    for (const std::uint32_t s : members) {
      const Source& source = problem.sources[s];
      merged.demand_per_s += source.demand_per_s;
      for (std::uint32_t i = 0; i < merged.pair_count; ++i) {
        const Pair& pair = problem.pairs[source.first_pair + i];
        image.pairs[merged.first_pair + i].cost_s += source.demand_per_s * pair.cost_s;
        image.pairs[merged.first_pair + i].work_s += source.demand_per_s * pair.work_s;
      }
    }
    for (std::size_t i = merged.first_pair; i < image.pairs.size(); ++i) {
      image.pairs[i].cost_s /= merged.demand_per_s;
      image.pairs[i].work_s /= merged.demand_per_s;
    }
    image.sources.push_back(merged);
  }
  return image;
}

namespace {

/// Block-coordinate descent: each row in turn is balanced exactly against what the others left
/// on the engines.
class WaterFill {
 public:
  explicit WaterFill(const Problem& image)
      : image_(image),
        flow_(image.pairs.size(), 0.0),
        load_(image.engines.size(), 0.0),
        level_(image.sources.size(), 0.0) {
    // Even loads to start with: each source spreads over its engines in proportion to what they can do.
    for (std::size_t s = 0; s < image.sources.size(); ++s) {
      const Source& source = image.sources[s];
      double room = 0.0;
      for (const Pair& pair : image.pairs_of(source)) room += ceiling(pair) / pair.work_s;
      if (room <= 0.0) continue;
      for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
        flow_[i] = source.demand_per_s * ceiling(image.pairs[i]) / image.pairs[i].work_s / room;
        load_[image.pairs[i].engine.at()] += flow_[i] * image.pairs[i].work_s;
      }
      level_[s] = 0.5 * source.shed_cost_s;
    }
  }

  void sweep() {
    for (std::size_t s = 0; s < image_.sources.size(); ++s) balance(s);
  }

  /// The marginal cost of each engine, as if there were no ceilings.
  std::vector<double> prices() const {
    std::vector<double> price(load_.size(), std::numeric_limits<double>::infinity());
    for (std::size_t e = 0; e < price.size(); ++e) {
      const CongestionCurve& curve = image_.engines[e].curve;
      const double idle = std::max(1e-6, 1.0 - load_[e] / curve.capacity);
      if (curve.ceiling > 0.0) price[e] = curve.q / (idle * idle);
    }
    return price;
  }

 private:
  /// The load at which an engine costs `price`. Without its ceiling: two rows can then trade places on a full
  /// engine, and what is sought is a start, not a plan.
  static double load_at(const CongestionCurve& curve, double price, double& softness) {
    softness = 0.0;
    if (price <= curve.q || curve.ceiling <= 0.0) return 0.0;
    const double root = std::sqrt(curve.q / price);
    softness = 0.5 * curve.capacity * root / price;
    return curve.capacity * (1.0 - root);
  }
  double ceiling(const Pair& pair) const { return image_.engines[pair.engine.at()].curve.ceiling; }

  /// The flow that the row puts on its columns when one more request costs `level`, and its derivative.
  double served(const Source& source, double level, double& slope) const {
    double sum = 0.0;
    slope = 0.0;
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const Pair& pair = image_.pairs[i];
      const CongestionCurve& curve = image_.engines[pair.engine.at()].curve;
      const double others = load_[pair.engine.at()];
      double softness = 0.0;
      const double load = load_at(curve, (level - pair.cost_s) / pair.work_s, softness);
      if (load <= others) continue;
      sum += (load - others) / pair.work_s;
      slope += softness / (pair.work_s * pair.work_s);
    }
    return sum;
  }

  void balance(std::size_t s) {
    const Source& source = image_.sources[s];
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
      load_[image_.pairs[i].engine.at()] -= flow_[i] * image_.pairs[i].work_s;
    double low = 0.0, high = source.shed_cost_s, level = std::min(level_[s], high), slope = 0.0;
    for (int step = 0; step < 30; ++step) {
      const double missing = source.demand_per_s - served(source, level, slope);
      if (std::abs(missing) <= 1e-4 * source.demand_per_s) break;
      if (missing > 0.0)
        low = level;
      else
        high = level;
      const double newton = slope > 0.0 ? level + missing / slope : 0.5 * (low + high);
      level = newton > low && newton < high ? newton : 0.5 * (low + high);
      if (high - low <= 1e-9 * high) break;
    }
    level_[s] = level;
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const Pair& pair = image_.pairs[i];
      double& load = load_[pair.engine.at()];
      double softness = 0.0;
      const double target =
          load_at(image_.engines[pair.engine.at()].curve, (level - pair.cost_s) / pair.work_s, softness);
      flow_[i] = std::max(0.0, target - load) / pair.work_s;
      load += flow_[i] * pair.work_s;
    }
  }

  const Problem& image_;
  std::vector<double> flow_, load_, level_;
};

}  // namespace

std::vector<double> water_fill_prices(const Problem& problem, std::uint32_t sweeps) {
  WaterFill fill(problem);
  for (std::uint32_t i = 0; i < sweeps; ++i) fill.sweep();
  return fill.prices();
}

}  // namespace signalbox::optimizer
