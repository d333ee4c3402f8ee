#include "tools/simulate/world/seeds.hpp"

#include <algorithm>

namespace signalbox::simulate {
namespace {

using Shares = std::vector<std::vector<Sample>>;

/// Sample by sample: samples of all runs are of the same instants.
Shares mean_of(std::span<const Report> reports, std::size_t p) {
  Shares sum;
  for (const Report& report : reports) {
    const Shares shares = shares_around(report.samples, report.phases[p - 1], report.phases[p]);
    if (sum.empty()) sum.resize(shares.size());
    for (std::size_t e = 0; e < sum.size(); ++e) {
      if (sum[e].empty())
        for (const Sample& sample : shares[e]) sum[e].push_back({sample.at, 0});
      for (std::size_t s = 0; s < sum[e].size(); ++s)
        sum[e][s].value += shares[e][s].value / static_cast<double>(reports.size());
    }
  }
  return sum;
}

Worst worst_of(std::span<const Report> reports, std::size_t p, std::size_t e) {
  Worst worst;
  worst.settled_after = Duration::zero();
  for (const Report& report : reports) {
    const StepAnswer& one = report.answers[p - 1].engines[e].answer;
    worst.beyond = std::max(worst.beyond, one.beyond);
    worst.reversals = std::max(worst.reversals, one.reversals);
    if (one.settled_after && worst.settled_after)
      worst.settled_after = std::max(*worst.settled_after, *one.settled_after);
    else
      worst.settled_after.reset();
  }
  return worst;
}

}  // namespace

std::vector<SeedsAnswer> answers_of(std::span<const Report> reports) {
  std::vector<SeedsAnswer> out;
  for (std::size_t p = 1; p < reports.front().phases.size(); ++p) {
    SeedsAnswer& answer = out.emplace_back();
    answer.mean = answer_of(mean_of(reports, p), reports.front().phases[p].from);
    for (std::size_t e = 0; e < answer.mean.engines.size(); ++e)
      answer.engines.push_back(worst_of(reports, p, e));
    for (const Report& report : reports) {
      const auto& together = report.answers[p - 1].together;
      answer.overshoot.push_back(together ? together->overshoot() : 0);
    }
  }
  return out;
}

}  // namespace signalbox::simulate
