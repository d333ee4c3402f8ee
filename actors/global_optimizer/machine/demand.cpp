#include "actors/global_optimizer/machine/demand.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::global_optimizer {

namespace {

/// Until something was measured.
constexpr double guessed_prompt_tokens = 500, guessed_output_tokens = 128;
/// Looks that are kept to tell whether a class shares a step.
constexpr std::size_t recent_looks = 8;
/// A rate that was taken over from all classes counts as seen for so long, at the most.
constexpr Duration most_worth = 6s;

double kept_share(Duration period, Duration memory) {
  return std::exp(-to_seconds(period) / to_seconds(memory));
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
  look(cluster, std::min(covered, 2 * std::max(report.period, bucket)), now);
  cluster.looked_at = now;
}

/// Of a class that is new in a cluster that was heard before it is known that nobody asked for it until now.
DemandBook::ClassDemand& DemandBook::row_of(Cluster& cluster, ClassIndex c) {
  const auto [row, added] = cluster.classes.try_emplace(c);
  const Duration silent = std::min(optimizer::Forecast::memory, cluster.looked_at - cluster.first_heard_at);
  if (added && silent > Duration{}) row->second.rate.was_silent(to_seconds(silent));
  return row->second;
}

void DemandBook::look(Cluster& cluster, Duration covered, Instant now) {
  const double seconds = to_seconds(covered), keep_shape = kept_share(covered, shape_memory);
  double arrived = 0;
  for (auto& [c, demand] : cluster.classes) {
    arrived += demand.arrived;
    demand.rate.observe(demand.arrived, seconds, now);
    demand.recent.push_back({demand.arrived, seconds});
    if (demand.recent.size() > recent_looks) demand.recent.pop_front();
    demand.arrived = 0;
    for (double* sum : {&demand.offered, &demand.prompt, &demand.finished, &demand.cached, &demand.output})
      *sum *= keep_shape;
  }
  const double before = cluster.all.rate_per_s();
  if (cluster.all.observe(arrived, seconds, now)) share_step(cluster, before);
}

/// All classes together have stepped. Each whose own last requests are likelier after a step like that than without one steps
/// as well, and rests on the requests of all.
void DemandBook::share_step(Cluster& cluster, double before_per_s) {
  const double after_per_s = cluster.all.level_per_s();
  if (before_per_s <= 0 || after_per_s <= 0) return;
  const double factor = after_per_s / before_per_s;
  for (auto& [c, demand] : cluster.classes) {
    const double rate = demand.rate.level_per_s();
    optimizer::Tally seen;
    for (auto look = demand.recent.rbegin();
         look != demand.recent.rend() && seen.exposure < cluster.all.exposure() - 1e-9; ++look)
      seen.amount += look->amount, seen.exposure += look->exposure;
    if (rate <= 0 || demand.rate.exposure() <= seen.exposure) continue;  // has stepped by itself
    const double likelier = seen.amount * std::log(factor) - rate * seen.exposure * (factor - 1);
    if (likelier <= 0) continue;
    const double worth = std::min(seen.exposure * after_per_s / (rate * factor), to_seconds(most_worth));
    demand.rate.restart(rate * factor, std::max(worth, seen.exposure));
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
  const bool asked = sums.rate.level_per_s() >= 1e-4;
  out.rate_per_s = asked ? sums.rate.rate_per_s() : 0;
  out.planned_per_s = asked ? sums.rate.upper_per_s() : 0;
  const double prompt = out.measured ? std::max(1.0, sums.prompt / sums.offered) : guessed_prompt_tokens;
  const double cached = sums.finished > 0.5 ? std::clamp(sums.cached / sums.finished, 0.0, 0.99 * prompt) : 0;
  const double output =
      sums.finished > 0.5 ? std::max(1.0, sums.output / sums.finished) : guessed_output_tokens;
  out.shape = {std::max(1.0, prompt - cached), output, prompt + output / 2};
  return out;
}

}  // namespace signalbox::global_optimizer
