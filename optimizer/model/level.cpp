#include "optimizer/model/level.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::optimizer {
namespace {

/// What an observation may lie off without being evidence, in standard deviations: half of the least step sought.
constexpr double slack = 0.5;
/// More is not believed of one observation: neither one outlier nor two are a step.
constexpr double most_deviations = 3.5;
/// Evidence up to this is the noise's own: what has come until then says nothing of where the level went.
constexpr double quiet = 1.5;
/// Weight of one observation in the variance.
constexpr double newest = 0.01;

void add(Tally& to, const Tally& seen) {
  to.amount += seen.amount;
  to.exposure += seen.exposure;
}

}  // namespace

double Level::standardised(double deviation) {
  const double noise = std::sqrt(variance_);
  const double clipped = std::clamp(deviation, -most_deviations * noise, most_deviations * noise);
  variance_ = std::max(1.0, variance_ + newest * (clipped * clipped - variance_));
  return clipped / noise;
}

bool Level::observe(Tally seen, double deviation, double keep) {
  known_.amount *= keep;
  known_.exposure *= keep;
  const bool first = known_.exposure <= 0;
  add(known_, seen);
  if (first) return false;
  const double z = standardised(deviation);
  for (std::size_t side = 0; side < sides_.size(); ++side) {
    auto& [evidence, since] = sides_[side];
    if (evidence > quiet) add(since, seen);
    evidence = std::max(0.0, evidence + (side == 0 ? z : -z) - slack);
    if (evidence <= quiet) since = {};
    if (evidence <= alarm_ || since.exposure <= 0) continue;
    known_ = since;
    sides_ = {};
    return true;
  }
  return false;
}

}  // namespace signalbox::optimizer
