#include "optimizer/model/warm.hpp"

#include <map>
#include <utility>

namespace signalbox::optimizer {
namespace {

using SourceKey = std::pair<ClusterIndex, ClassIndex>;

std::map<SourceKey, std::size_t> rows_by_key(const Problem& problem) {
  std::map<SourceKey, std::size_t> rows;
  for (std::size_t s = 0; s < problem.sources.size(); ++s)
    rows.emplace(SourceKey(problem.sources[s].cluster, problem.sources[s].service_class), s);
  return rows;
}

/// Calls visit(row before, row now, demand now / demand before) for each source that both problems have.
template <class Visit>
void for_each_common(const Problem& before, const Problem& now, Visit visit) {
  const auto rows = rows_by_key(before);
  for (std::size_t s = 0; s < now.sources.size(); ++s) {
    const Source& source = now.sources[s];
    const auto it = rows.find(SourceKey(source.cluster, source.service_class));
    if (it == rows.end()) continue;
    const double demand = before.sources[it->second].demand_per_s;
    if (demand > 0.0) visit(it->second, s, source.demand_per_s / demand);
  }
}

}  // namespace

std::vector<double> carried_flows(const Problem& before, const Plan& plan, const Problem& now) {
  std::vector<double> flows(now.pairs.size(), 0.0);
  for_each_common(before, now, [&](std::size_t old_row, std::size_t row, double scale) {
    const Source& old_source = before.sources[old_row];
    std::size_t old_pair = old_source.first_pair;
    const std::size_t old_end = old_pair + old_source.pair_count;
    const Source& source = now.sources[row];
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const EngineIndex engine = now.pairs[i].engine;
      while (old_pair < old_end && before.pairs[old_pair].engine < engine) ++old_pair;
      if (old_pair == old_end) break;
      if (before.pairs[old_pair].engine != engine || now.engines[engine.at()].curve.ceiling <= 0.0) continue;
      flows[i] = scale * plan.flow_per_s[old_pair];
    }
  });
  return flows;
}

std::vector<double> carried_shed(const Problem& before, const Plan& plan, const Problem& now) {
  std::vector<double> shed(now.sources.size(), 0.0);
  for_each_common(before, now, [&](std::size_t old_row, std::size_t row, double scale) {
    shed[row] = scale * plan.shed_per_s[old_row];
  });
  return shed;
}

}  // namespace signalbox::optimizer
