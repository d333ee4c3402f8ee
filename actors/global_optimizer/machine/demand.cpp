#include "actors/global_optimizer/machine/demand.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::global_optimizer {

namespace {

/// Until something was measured.
constexpr double guessed_prompt_tokens = 500, guessed_output_tokens = 128;
/// A cluster that has not reported for so long is left out of the looks at the fleet.
constexpr Duration late = 2s;
/// Looks that are kept to tell whether a class shares a step, and what is asked for by now.
constexpr std::size_t recent_looks = 8;
/// A rate that was taken over from all classes counts as seen for so long, at the most.
constexpr Duration most_worth = 6s;

double kept_share(Duration period, Duration memory) {
  return std::exp(-to_seconds(period) / to_seconds(memory));
}

}  // namespace

bool DemandBook::hear(const schema::DemandReport& report, const Incarnation& router, const Digest& policy,
                      Instant now) {
  if (report.policy != policy || report.period <= Duration{}) return false;
  Cluster& cluster = clusters_[report.cluster];
  if (cluster.heard_at != never_yet && now - cluster.heard_at > lifetime) cluster = {};
  if (cluster.heard_at == never_yet) {
    cluster.first_heard_at = now - report.period;
    cluster.looked_at = cluster.first_heard_at;
  }
  cluster.heard_at = now;
  cluster.told[router.random] += report.period;
  for (const auto& row : report.rows) {
    ClassDemand& demand = row_of(cluster, row.request_class);
    demand.arrived += static_cast<double>(row.offered);
    demand.offered += static_cast<double>(row.offered);
    demand.prompt += static_cast<double>(row.prompt_tokens);
    demand.finished += static_cast<double>(row.finished);
    demand.cached += static_cast<double>(row.cached_tokens);
    demand.output += static_cast<double>(row.output_tokens);
  }
  for (const auto& row : report.groups) {
    ClassDemand::Group& group = row_of(cluster, row.request_class).groups[row.group];
    group.prefix_tokens = row.prefix_tokens;
    group.requests += static_cast<double>(row.requests);
  }
  // Reports come a little early and late, and some are lost: those do not mean that nobody came.
  const Duration covered = now - cluster.looked_at;
  if (covered < bucket * 4 / 5) return false;
  // After a cut, or if this process stood still, those of a longer time come at once.
  Duration told{};
  for (const auto& [life, time] : cluster.told) told = std::max(told, time);
  bool stepped = look(cluster, std::max(told, std::min(covered, 2 * std::max(report.period, bucket))), now);
  cluster.looked_at = now;
  cluster.told.clear();
  stepped |= look_at_fleet(now);
  return stepped;
}

/// Of a class that is new in a cluster that was heard before it is known that nobody asked for it until now.
DemandBook::ClassDemand& DemandBook::row_of(Cluster& cluster, ClassIndex c) {
  const auto [row, added] = cluster.classes.try_emplace(c);
  const Duration silent = std::min(optimizer::Forecast::memory, cluster.looked_at - cluster.first_heard_at);
  if (added && silent > Duration{}) row->second.rate.was_silent(to_seconds(silent));
  return row->second;
}

bool DemandBook::Counted::observe(double count, double seconds, Instant now) {
  recent.push_back({count, seconds});
  if (recent.size() > recent_looks) recent.pop_front();
  return rate.observe(count, seconds, now);
}

double DemandBook::Counted::sure_per_s() const {
  optimizer::Tally seen;
  for (const auto& look : recent) seen.amount += look.amount, seen.exposure += look.exposure;
  return std::max(rate.sure_per_s(),
                  seen.exposure > 0 ? (seen.amount - std::sqrt(seen.amount)) / seen.exposure : 0.0);
}

DemandBook::Step DemandBook::Step::of(double before_per_s, const optimizer::Forecast& after) {
  const double per_s = after.level_per_s();
  return {before_per_s > 0 ? per_s / before_per_s : 0, per_s, after.exposure()};
}

bool DemandBook::Counted::follow(const Step& whole) {
  const double level = rate.level_per_s();
  optimizer::Tally seen;
  for (auto look = recent.rbegin(); look != recent.rend() && seen.exposure < whole.seconds - 1e-9; ++look)
    seen.amount += look->amount, seen.exposure += look->exposure;
  if (level <= 0 || rate.exposure() <= seen.exposure) return false;  // has stepped by itself
  const double after = level * whole.factor;
  const double likelier = seen.amount * std::log(whole.factor) - (after - level) * seen.exposure;
  if (likelier <= 0) return false;
  const double worth = std::min(seen.exposure * whole.per_s / after, to_seconds(most_worth));
  rate.restart(after, std::max(worth, seen.exposure));
  return true;
}

/// True if a class or all of them have stepped.
bool DemandBook::look(Cluster& cluster, Duration covered, Instant now) {
  const double seconds = to_seconds(covered), keep_shape = kept_share(covered, shape_memory),
               keep_group = kept_share(covered, group_memory);
  double arrived = 0;
  bool stepped = false;
  for (auto& [c, demand] : cluster.classes) {
    arrived += demand.arrived;
    stepped |= demand.observe(demand.arrived, seconds, now);
    demand.arrived = 0;
    for (double* sum : {&demand.offered, &demand.prompt, &demand.finished, &demand.cached, &demand.output})
      *sum *= keep_shape;
    demand.seconds = (demand.seconds + seconds) * keep_group;
    for (auto& [group, seen] : demand.groups) seen.requests *= keep_group;
    std::erase_if(demand.groups, [](const auto& g) { return g.second.requests < 0.1; });
  }
  cluster.unseen.amount += arrived;
  cluster.unseen.exposure += seconds;
  const double before = cluster.all.rate.rate_per_s();
  if (!cluster.all.observe(arrived, seconds, now)) return stepped;
  share_step(cluster, Step::of(before, cluster.all.rate));
  return true;
}

/// Once each cluster that still reports has been looked at. What doubles everywhere shows in the sum before it does in
/// a cluster that few ask.
bool DemandBook::look_at_fleet(Instant now) {
  optimizer::Tally sum;
  std::size_t live = 0;
  for (const auto& [name, cluster] : clusters_) {
    if (now - cluster.heard_at > late) continue;
    if (cluster.unseen.exposure <= 0) return false;
    sum.amount += cluster.unseen.amount / cluster.unseen.exposure;
    sum.exposure += cluster.unseen.exposure;
    ++live;
  }
  for (auto& [name, cluster] : clusters_) cluster.unseen = {};
  if (live < 2) return false;
  const double seconds = sum.exposure / static_cast<double>(live), before = fleet_.rate_per_s();
  if (!fleet_.observe(sum.amount * seconds, seconds, now)) return false;
  const Step step = Step::of(before, fleet_);
  bool followed = false;
  for (auto& [name, cluster] : clusters_) {
    if (!step.real() || now - cluster.heard_at > late || !cluster.all.follow(step)) continue;
    share_step(cluster, step);
    followed = true;
  }
  return followed;
}

/// All classes of a cluster together have stepped, or all clusters have.
void DemandBook::share_step(Cluster& cluster, const Step& step) {
  if (!step.real()) return;
  for (auto& [c, demand] : cluster.classes) demand.follow(step);
}

const DemandBook::ClassDemand* DemandBook::find(const ClusterName& name, ClassIndex c, Instant now) const {
  const auto cluster = clusters_.find(name);
  if (cluster == clusters_.end() || now - cluster->second.heard_at > lifetime) return nullptr;
  const auto row = cluster->second.classes.find(c);
  return row == cluster->second.classes.end() ? nullptr : &row->second;
}

std::vector<HotGroup> DemandBook::groups_of(const ClusterName& cluster, ClassIndex c, Instant now) const {
  std::vector<HotGroup> out;
  const ClassDemand* found = find(cluster, c, now);
  if (found == nullptr || found->seconds <= 0) return out;
  for (const auto& [group, seen] : found->groups) {
    const double rate = seen.requests / found->seconds;
    if (rate >= least_group_rate_per_s) out.push_back({group, seen.prefix_tokens, rate});
  }
  return out;
}

Expected DemandBook::of(const ClusterName& cluster, ClassIndex c, Instant now) const {
  const ClassDemand nothing;
  const ClassDemand* found = find(cluster, c, now);
  const ClassDemand& sums = found ? *found : nothing;
  Expected out;
  out.measured = sums.offered > 0.5;
  const bool asked = sums.rate.level_per_s() >= 1e-4;
  out.rate_per_s = asked ? sums.rate.rate_per_s() : 0;
  out.sure_per_s = asked ? std::min(out.rate_per_s, sums.sure_per_s()) : 0;
  out.planned_per_s = asked ? sums.rate.upper_per_s() : 0;
  const double prompt = out.measured ? std::max(1.0, sums.prompt / sums.offered) : guessed_prompt_tokens;
  const double cached = sums.finished > 0.5 ? std::clamp(sums.cached / sums.finished, 0.0, 0.99 * prompt) : 0;
  const double output =
      sums.finished > 0.5 ? std::max(1.0, sums.output / sums.finished) : guessed_output_tokens;
  out.shape = {std::max(1.0, prompt - cached), output, prompt + output / 2};
  return out;
}

}  // namespace signalbox::global_optimizer
