#include "optimizer/solve/coarse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "messages/base/rng.hpp"

namespace signalbox::optimizer {
namespace {

using Sources = std::vector<std::uint32_t>;

/// A hash of the engines that a source may use. A collision merges strangers only if they have equally many engines, and then
/// worsens the start only.
std::uint64_t engines_hash(const Problem& problem, const Source& source) {
  std::uint64_t hash = source.pair_count;
  for (const Pair& pair : problem.pairs_of(source)) hash = (hash ^ pair.engine.value) * 0x9e3779b97f4a7c15ULL;
  return mix64(hash);
}

/// What a request costs there at about half load: by this sources are alike or not.
double typical_cost(const Problem& problem, const Pair& pair) {
  return pair.cost_s + 4.0 * pair.work_s * problem.engines[pair.engine.at()].curve.q;
}

/// Mean squared difference of two sources' costs, from a sample of their pairs, and of their costs of refusal.
double difference(const Problem& problem, const Source& a, const Source& b) {
  constexpr std::uint32_t sample = 64;
  const std::uint32_t stride = 1 + a.pair_count / sample;
  double sum = 0.0;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < a.pair_count; i += stride, ++count) {
    const double d = typical_cost(problem, problem.pairs[a.first_pair + i]) -
                     typical_cost(problem, problem.pairs[b.first_pair + i]);
    sum += d * d;
  }
  const double refusal = a.shed_cost_s - b.shed_cost_s;
  return sum / count + refusal * refusal;
}

/// Splits sources into at most `parts` groups: the next group begins with the source that is least like those which began one.
std::vector<Sources> split(const Problem& problem, const Sources& members, std::size_t parts) {
  std::vector<double> least(members.size(), std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> nearest(members.size(), 0);
  std::vector<Sources> groups;
  std::size_t next = 0;
  while (groups.size() < parts) {
    const Source& first = problem.sources[members[next]];
    for (std::size_t i = 0; i < members.size(); ++i)
      if (const double d = difference(problem, first, problem.sources[members[i]]); d < least[i])
        least[i] = d, nearest[i] = static_cast<std::uint32_t>(groups.size());
    groups.emplace_back();
    next = static_cast<std::size_t>(std::max_element(least.begin(), least.end()) - least.begin());
    if (least[next] <= 0.0) break;
  }
  for (std::size_t i = 0; i < members.size(); ++i) groups[nearest[i]].push_back(members[i]);
  return groups;
}

/// One row for all of them, with the means of their costs and works.
void merge(const Problem& problem, const Sources& members, Coarse& image) {
  Source row = problem.sources[members.front()];
  row.first_pair = static_cast<std::uint32_t>(image.problem.pairs.size());
  row.demand_per_s = row.shed_cost_s = 0.0;
  double guarded = 0.0, guard_cost = 0.0;
  for (const Pair& pair : problem.pairs_of(problem.sources[members.front()]))
    image.problem.pairs.push_back({pair.engine, 0.0, 0.0});
  for (const std::uint32_t s : members) {
    const Source& source = problem.sources[s];
    row.demand_per_s += source.demand_per_s;
    row.shed_cost_s += source.demand_per_s * source.shed_cost_s;
    guarded += source.demand_per_s * source.floor_fraction;
    guard_cost += source.demand_per_s * source.floor_fraction * source.floor_shed_cost_s;
    for (std::uint32_t i = 0; i < row.pair_count; ++i) {
      const Pair& pair = problem.pairs[source.first_pair + i];
      image.problem.pairs[row.first_pair + i].cost_s += source.demand_per_s * pair.cost_s;
      image.problem.pairs[row.first_pair + i].work_s += source.demand_per_s * pair.work_s;
    }
  }
  for (std::size_t i = row.first_pair; i < image.problem.pairs.size(); ++i) {
    image.problem.pairs[i].cost_s /= row.demand_per_s;
    image.problem.pairs[i].work_s /= row.demand_per_s;
  }
  row.shed_cost_s /= row.demand_per_s;
  row.floor_fraction = std::min(1.0, guarded / row.demand_per_s);
  row.floor_shed_cost_s = guarded > 0.0 ? std::max(row.shed_cost_s, guard_cost / guarded) : 0.0;
  image.problem.sources.push_back(row);
}

}  // namespace

std::vector<std::uint32_t> group_sources(const Problem& problem, std::size_t count) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, Sources> sets;
  for (std::uint32_t s = 0; s < problem.sources.size(); ++s) {
    const Source& source = problem.sources[s];
    if (source.demand_per_s > 0.0 && source.pair_count > 0)
      sets[{engines_hash(problem, source), source.pair_count}].push_back(s);
  }
  std::vector<std::uint32_t> group_of(problem.sources.size(), no_group);
  const std::size_t parts = sets.empty() ? 1 : std::max<std::size_t>(1, count / sets.size());
  std::uint32_t next = 0;
  for (const auto& [key, members] : sets)
    for (const Sources& group : split(problem, members, parts)) {
      for (const std::uint32_t s : group) group_of[s] = next;
      ++next;
    }
  return group_of;
}

Coarse coarsen(const Problem& problem, std::vector<std::uint32_t> groups) {
  Coarse image;
  image.problem.engines = problem.engines;
  image.row_of = std::move(groups);
  std::vector<Sources> members;
  for (std::uint32_t s = 0; s < image.row_of.size(); ++s) {
    if (image.row_of[s] == no_group) continue;
    if (image.row_of[s] >= members.size()) members.resize(image.row_of[s] + 1);
    members[image.row_of[s]].push_back(s);
  }
  for (const Sources& group : members) merge(problem, group, image);
  return image;
}

void Coarse::share_out(const Problem& whole, const std::vector<double>& flow_per_s,
                       const std::vector<double>& shed_per_s, std::vector<double>& whole_flow_per_s,
                       std::vector<double>& whole_shed_per_s) const {
  whole_flow_per_s.assign(whole.pairs.size(), 0.0);
  whole_shed_per_s.assign(whole.sources.size(), 0.0);
  for (std::size_t s = 0; s < whole.sources.size(); ++s) {
    const Source& source = whole.sources[s];
    if (row_of[s] == no_group) {
      whole_shed_per_s[s] = source.demand_per_s;
      continue;
    }
    const Source& row = problem.sources[row_of[s]];
    const double share = source.demand_per_s / row.demand_per_s;
    whole_shed_per_s[s] = share * shed_per_s[row_of[s]];
    for (std::uint32_t i = 0; i < source.pair_count; ++i)
      whole_flow_per_s[source.first_pair + i] = share * flow_per_s[row.first_pair + i];
  }
}

}  // namespace signalbox::optimizer
