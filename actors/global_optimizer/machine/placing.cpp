#include "actors/global_optimizer/machine/placing.hpp"

#include <algorithm>

#include "optimizer/model/place.hpp"

namespace signalbox::global_optimizer {

namespace {

using optimizer::PlacementOption;
using GroupKey = std::pair<ClassIndex, std::uint64_t>;

/// A group's requests in one cluster.
struct Part {
  std::size_t source;  ///< row of FleetState::traffic
  std::size_t group;
  double rate_per_s;
};

struct Group {
  GroupKey key;
  double tokens = 0, rate_per_s = 0;
};

class Builder {
 public:
  Builder(const Facts& facts, const optimizer::BuiltProblem& built, const optimizer::Plan& plan)
      : facts_(facts), built_(built), plan_(plan) {}

  void read_groups(const DemandBook& demand, Instant now) {
    std::map<GroupKey, Group> known;
    std::vector<std::pair<GroupKey, std::pair<std::size_t, double>>> asked;
    for (std::size_t s = 0; s < facts_.fleet.traffic.size(); ++s) {
      const optimizer::TrafficState& traffic = facts_.fleet.traffic[s];
      for (const HotGroup& hot :
           demand.groups_of(facts_.table->clusters[traffic.cluster.at()].name, traffic.service_class, now)) {
        const GroupKey key(traffic.service_class, hot.group);
        Group& group = known[key];
        group.key = key;
        group.tokens = std::max(group.tokens, hot.prefix_tokens);
        group.rate_per_s += hot.rate_per_s;
        asked.push_back({key, {s, hot.rate_per_s}});
      }
    }
    for (const auto& [key, group] : known) groups_.push_back(group);
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
      return a.rate_per_s * a.tokens > b.rate_per_s * b.tokens;
    });
    if (groups_.size() > Placer::most_groups) groups_.resize(Placer::most_groups);
    for (const auto& [key, part] : asked)
      for (std::size_t g = 0; g < groups_.size(); ++g)
        if (groups_[g].key == key) parts_.push_back({part.first, g, part.second});
  }

  bool empty() const { return parts_.empty(); }
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Part>& parts() const { return parts_; }

  optimizer::PlacementProblem build(const std::vector<std::vector<EngineIndex>>& in_force) const {
    optimizer::PlacementProblem out;
    for (std::size_t e = 0; e < built_.problem.engines.size(); ++e) {
      const double kv = facts_.fleet.engines[e].kv_tokens;
      out.engines.push_back({built_.problem.engines[e].curve, plan_.load[e],
                             kv > 0 ? facts_.policy->cache.group_memory * kv : 1e15, 0});
    }
    for (std::size_t s = 0; s < built_.problem.sources.size(); ++s) {
      const optimizer::Source& source = built_.problem.sources[s];
      for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
        add_worth_of_cache(s, i, out);
    }
    for (const Group& group : groups_) out.group_tokens.push_back(group.tokens);
    for (const Part& part : parts_) out.rows.push_back(row_of(part, in_force[part.group], out));
    for (auto& engine : out.engines) engine.base_load = std::max(0.0, engine.base_load);
    return out;
  }

 private:
  static double prompt_tokens(const optimizer::RequestShape& shape) {
    return std::max(shape.uncached_prompt_tokens, shape.context_tokens - shape.output_tokens / 2);
  }

  /// What caches save now, spread over the memory that does it.
  void add_worth_of_cache(std::size_t source, std::size_t pair, optimizer::PlacementProblem& out) const {
    const EngineIndex e = built_.problem.pairs[pair].engine;
    const optimizer::EngineState& engine = facts_.fleet.engines[e.at()];
    if (engine.kv_tokens <= 0) return;
    const optimizer::RequestShape& shape = facts_.fleet.traffic[source].shape;
    const double cached = prompt_tokens(shape) - shape.uncached_prompt_tokens;
    const double token_s =
        engine.step.slowness * engine.step.c_s *
        (latency_weights(facts_.fleet, facts_.fleet.traffic[source]).ttft + plan_.price[e.at()]);
    out.engines[e.at()].hold_cost_s_per_token += plan_.flow_per_s[pair] * cached * token_s / engine.kv_tokens;
  }

  /// Takes what the plan has of the row out of the engines' other load.
  optimizer::PlacementRow row_of(const Part& part, const std::vector<EngineIndex>& holders,
                                 optimizer::PlacementProblem& out) const {
    const optimizer::Source& source = built_.problem.sources[part.source];
    const optimizer::TrafficState& traffic = facts_.fleet.traffic[part.source];
    const double share = source.demand_per_s > 0 ? std::min(1.0, part.rate_per_s / source.demand_per_s) : 0;
    optimizer::PlacementRow row{static_cast<std::uint32_t>(part.group), part.rate_per_s, {}};
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const optimizer::Pair& pair = built_.problem.pairs[i];
      out.engines[pair.engine.at()].base_load -= share * plan_.flow_per_s[i] * pair.work_s;
      row.options.push_back(option_of(i, traffic, groups_[part.group].tokens));
    }
    keep_cheapest(row, holders);
    return row;
  }

  PlacementOption option_of(std::size_t pair, const optimizer::TrafficState& traffic, double tokens) const {
    const optimizer::RequestShape& shape = traffic.shape;
    const optimizer::LatencyWeights weights = latency_weights(facts_.fleet, traffic);
    const EngineIndex e = built_.problem.pairs[pair].engine;
    const optimizer::StepTime& step = facts_.fleet.engines[e.at()].step;
    const double q = built_.problem.engines[e.at()].curve.q;
    const double way = built_.parts[pair].network_s + built_.parts[pair].egress_s;
    const auto served = [&](double uncached, double& cost, double& work) {
      const optimizer::RequestShape as{uncached, shape.output_tokens, shape.context_tokens};
      work = std::max(optimizer::work_s(step, as), 1e-9);
      cost = way + optimizer::unloaded_latency_s(step, as, weights) - q * work;
    };
    const double prompt = prompt_tokens(shape);
    PlacementOption out{e, 0, 0, 0, 0};
    served(std::max(1.0, prompt - tokens), out.hit_cost_s, out.hit_work_s);
    served(prompt, out.miss_cost_s, out.miss_work_s);
    return out;
  }

  /// At the plan's prices. Engines that the pairs leave out have no options.
  void keep_cheapest(optimizer::PlacementRow& row, const std::vector<EngineIndex>& holders) const {
    if (row.options.size() <= Placer::most_options) return;
    const auto rank = [&](const PlacementOption& o) {
      const bool held = std::ranges::binary_search(holders, o.engine);
      return std::pair(!held, o.hit_cost_s + o.hit_work_s * plan_.price[o.engine.at()]);
    };
    std::ranges::stable_sort(row.options, {}, rank);
    row.options.resize(Placer::most_options);
    std::ranges::sort(row.options, {}, &PlacementOption::engine);
  }

  const Facts& facts_;
  const optimizer::BuiltProblem& built_;
  const optimizer::Plan& plan_;
  std::vector<Group> groups_;
  std::vector<Part> parts_;
};

/// Ascending by group, then engine.
void add_rows(const Part& part, const Group& group, const optimizer::PlacementRow& row,
              const std::vector<double>& flow, const std::vector<EngineIndex>& holders, double more_at,
              std::vector<schema::GroupRow>& out) {
  double there = 0;
  for (std::size_t i = 0; i < flow.size(); ++i)
    if (std::ranges::binary_search(holders, row.options[i].engine)) there += flow[i];
  if (there <= 1e-6 * part.rate_per_s) return;
  for (std::size_t i = 0; i < flow.size(); ++i)
    if (flow[i] > 0 && std::ranges::binary_search(holders, row.options[i].engine))
      out.push_back({group.key.first, group.key.second, group.tokens, row.options[i].engine,
                     std::clamp(flow[i] / there, 0.0, 1.0), group.rate_per_s, more_at});
}

/// Where groups would be held too, if memory were no limit: by group, engines.
std::vector<std::vector<EngineIndex>> kept_out_by_memory(const optimizer::PlacementProblem& problem,
                                                         const optimizer::Placement& placement) {
  std::vector<double> free;
  for (const auto& engine : problem.engines) free.push_back(engine.memory_tokens);
  for (std::size_t g = 0; g < placement.holders.size(); ++g)
    for (const EngineIndex e : placement.holders[g]) free[e.at()] -= problem.group_tokens[g];
  optimizer::PlacementProblem roomy = problem;
  bool full = false;
  for (const optimizer::PlacementRow& row : problem.rows)
    for (const PlacementOption& option : row.options) {
      const EngineIndex e = option.engine;
      if (problem.group_tokens[row.group] <= free[e.at()]) continue;
      if (std::ranges::binary_search(placement.holders[row.group], e)) continue;
      roomy.engines[e.at()].memory_tokens = 1e15;
      full = true;
    }
  std::vector<std::vector<EngineIndex>> out(placement.holders.size());
  if (!full) return out;
  const optimizer::Placement better = optimizer::place(roomy, placement.holders, Placer::least_gain);
  for (std::size_t g = 0; g < out.size(); ++g)
    for (const EngineIndex e : better.holders[g])
      if (!std::ranges::binary_search(placement.holders[g], e) && problem.group_tokens[g] > free[e.at()])
        out[g].push_back(e);
  return out;
}

}  // namespace

void Placer::add_groups(const Facts& facts, const optimizer::BuiltProblem& built, const optimizer::Plan& plan,
                        const DemandBook& demand, Instant now,
                        std::vector<schema::RoutingSnapshot>& snapshots) {
  Builder builder(facts, built, plan);
  builder.read_groups(demand, now);
  const auto before = std::exchange(holders_, {});
  if (builder.empty()) return;
  std::vector<std::vector<EngineIndex>> start;
  for (const Group& group : builder.groups()) {
    const auto known = before.find(group.key);
    start.push_back(known == before.end() ? std::vector<EngineIndex>{} : known->second);
  }
  const optimizer::PlacementProblem problem = builder.build(start);
  const optimizer::Placement placement = optimizer::place(problem, start, least_gain);
  std::vector<double> more_at;
  for (std::size_t g = 0; g < start.size(); ++g) {
    holders_[builder.groups()[g].key] = placement.holders[g];
    more_at.push_back(optimizer::more_at_per_s(problem, placement, static_cast<std::uint32_t>(g)));
  }
  for (std::size_t p = 0; p < builder.parts().size(); ++p) {
    const Part& part = builder.parts()[p];
    add_rows(part, builder.groups()[part.group], problem.rows[p], placement.flow_per_s[p],
             placement.holders[part.group], more_at[part.group],
             snapshots[facts.fleet.traffic[part.source].cluster.at()].groups);
  }
  const auto kept_out = kept_out_by_memory(problem, placement);
  for (const Part& part : builder.parts())
    for (const EngineIndex e : kept_out[part.group])
      snapshots[facts.fleet.traffic[part.source].cluster.at()].limits.push_back(
          {builder.groups()[part.group].key.first, e, schema::PolicyLimit::cache_memory, 0, true});
  for (auto& snapshot : snapshots)
    std::ranges::sort(snapshot.groups, {}, [](const schema::GroupRow& row) {
      return std::tuple(row.request_class, row.group, row.engine);
    });
}

}  // namespace signalbox::global_optimizer
