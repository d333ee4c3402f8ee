#include "actors/global_optimizer/machine/demand.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::global_optimizer {

namespace {

/// Until something was measured.
constexpr double guessed_prompt_tokens = 500, guessed_output_tokens = 128;
/// The planned rate lies this many standard deviations of a Poisson count over `quantile_window` above the level.
constexpr double quantile_sigmas = 1.0;
constexpr Duration quantile_window = 4s;

double kept_share(Duration period, Duration memory) {
  return std::exp(-to_seconds(period) / to_seconds(memory));
}

/// How far a count lies from the level's, in standard deviations of a Poisson count (Anscombe's transform), given that
/// the level itself rests on counts.
double deviation_of(double count, double seconds, const optimizer::Level& level) {
  const auto stable = [](double n) { return 2 * std::sqrt(n + 0.375); };
  return (stable(count) - stable(level.value() * seconds)) / std::sqrt(1 + seconds / level.exposure());
}

}  // namespace

void DemandBook::hear(const schema::DemandReport& report, const Digest& policy, Instant now) {
  if (report.policy != policy || report.period <= Duration{}) return;
  Cluster& cluster = clusters_[report.cluster];
  if (cluster.heard_at != never_yet && now - cluster.heard_at > lifetime) cluster = {};
  if (cluster.heard_at == never_yet) {
    cluster.first_heard_at = now - report.period;
    cluster.looked_at = cluster.first_heard_at;
  }
  cluster.heard_at = now;
  for (const auto& row : report.rows) {
    ClassDemand& demand = row_of(cluster, row.request_class);
    demand.arrived += static_cast<double>(row.offered);
    demand.offered += static_cast<double>(row.offered);
    demand.prompt += static_cast<double>(row.prompt_tokens);
    demand.finished += static_cast<double>(row.finished);
    demand.cached += static_cast<double>(row.cached_tokens);
    demand.output += static_cast<double>(row.output_tokens);
  }
  // Reports come a little early and late, and some are lost: those do not mean that nobody came.
  const Duration covered = now - cluster.looked_at;
  if (covered < bucket * 4 / 5) return;
  look(cluster, std::min(covered, 2 * std::max(report.period, bucket)));
  cluster.looked_at = now;
}

/// Of a class that is new in a cluster that was heard before it is known that nobody asked for it until now.
DemandBook::ClassDemand& DemandBook::row_of(Cluster& cluster, ClassIndex c) {
  const auto [row, added] = cluster.classes.try_emplace(c);
  const Duration silent = std::min(rate_memory, cluster.looked_at - cluster.first_heard_at);
  if (added && silent > Duration{}) row->second.rate.observe({0, to_seconds(silent)}, 0, 1);
  return row->second;
}

void DemandBook::look(Cluster& cluster, Duration covered) {
  const double seconds = to_seconds(covered), keep_shape = kept_share(covered, shape_memory);
  for (auto& [c, demand] : cluster.classes) {
    const double deviation =
        demand.rate.exposure() > 0 ? deviation_of(demand.arrived, seconds, demand.rate) : 0;
    demand.rate.observe({demand.arrived, seconds}, deviation, kept_share(covered, rate_memory));
    demand.arrived = 0;
    for (double* sum : {&demand.offered, &demand.prompt, &demand.finished, &demand.cached, &demand.output})
      *sum *= keep_shape;
  }
}

const DemandBook::ClassDemand* DemandBook::find(const ClusterName& name, ClassIndex c, Instant now) const {
  const auto cluster = clusters_.find(name);
  if (cluster == clusters_.end() || now - cluster->second.heard_at > lifetime) return nullptr;
  const auto row = cluster->second.classes.find(c);
  return row == cluster->second.classes.end() ? nullptr : &row->second;
}

Expected DemandBook::of(const ClusterName& cluster, ClassIndex c, Instant now) const {
  const ClassDemand nothing;
  const ClassDemand* found = find(cluster, c, now);
  const ClassDemand& sums = found ? *found : nothing;
  Expected out;
  out.measured = sums.offered > 0.5;
  out.rate_per_s = sums.rate.value() < 1e-4 ? 0 : sums.rate.value();
  out.planned_per_s =
      out.rate_per_s + quantile_sigmas * std::sqrt(out.rate_per_s / to_seconds(quantile_window));
  const double prompt = out.measured ? std::max(1.0, sums.prompt / sums.offered) : guessed_prompt_tokens;
  const double cached = sums.finished > 0.5 ? std::clamp(sums.cached / sums.finished, 0.0, 0.99 * prompt) : 0;
  const double output =
      sums.finished > 0.5 ? std::max(1.0, sums.output / sums.finished) : guessed_output_tokens;
  out.shape = {std::max(1.0, prompt - cached), output, prompt + output / 2};
  return out;
}

}  // namespace signalbox::global_optimizer
