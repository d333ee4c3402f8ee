#include "actors/global_optimizer/machine/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "actors/global_optimizer/machine/domains.hpp"
#include "actors/kit/fleet/ejection.hpp"
#include "actors/kit/shape/curve.hpp"
#include "actors/kit/shape/egress.hpp"
#include "optimizer/model/capped.hpp"

namespace signalbox::global_optimizer {

namespace {

constexpr double undeclared_round_trip_s = 0.2;
constexpr Duration slowness_lifetime = 30s;
/// Refusing below the floor costs this much more than above it.
constexpr double floor_cost_factor = 10;
/// Seconds per request/s moved, for one unit of the policy's churn weight.
constexpr double churn_unit_s = 0.3;
/// Of a source's demand; less is the solver's tolerance.
constexpr double least_refused = 1e-3;
/// No row has room under less, and such caps bind nothing.
constexpr double least_cap = 1e-9;

/// Megabytes that one request moves between regions, both ways; 0 within one.
double egress_mb(const schema::ClusterRow& from, const schema::ClusterRow& to,
                 const optimizer::RequestShape& shape) {
  if (from.region == to.region) return 0;
  const double prompt = std::max(0.0, shape.context_tokens - shape.output_tokens / 2);
  return kit::bytes_on_the_way(prompt, shape.output_tokens) / kit::megabyte;
}

/// A degraded or starting engine has the capacity that its verdict gives it. A suspect one gets no new flow.
double availability(const schema::HealthVerdict* verdict) {
  if (!verdict) return 1;
  return kit::may_serve(verdict->state) ? verdict->capacity_factor : 0;
}

/// What is known of all engines, with the verdicts that are believed.
class Known {
 public:
  Known(const schema::FleetTable& table, const policy::CompiledPolicy& policy, const kit::Picture& picture,
        Instant now) {
    std::vector<kit::Accusation> accusations;
    for (const auto& row : table.engines) {
      engines_.push_back(picture.of(row.name, now));
      accusations.push_back(
          {engines_.back().accused_since, engines_.back().signal, engines_.back().heard_at});
    }
    kit::overrule(table, policy, accusations, now, engines_, instead_);
  }
  const kit::Picture::EngineNow& at(std::size_t engine) const { return engines_[engine]; }

 private:
  std::vector<kit::Picture::EngineNow> engines_;
  std::deque<schema::HealthVerdict> instead_;
};

optimizer::EngineState engine_state(const schema::EngineRow& row, const kit::Picture::EngineNow& known,
                                    Instant now) {
  optimizer::EngineState out;
  out.step = {row.step_s, row.per_sequence_s, row.per_context_token_s, row.per_prefill_token_s, 1.0};
  out.kv_tokens = row.kv_tokens;
  out.max_batch = row.max_batch;
  if (known.profile) {
    const schema::EngineProfile& p = *known.profile;
    if (p.step_s > 0)
      out.step = {p.step_s, p.per_sequence_s, p.per_context_token_s, p.per_prefill_token_s, 1.0};
    if (p.kv_tokens > 0) out.kv_tokens = p.kv_tokens;
    if (p.max_batch > 0) out.max_batch = p.max_batch;
  }
  if (known.signal && now - known.heard_at <= slowness_lifetime)
    out.step.slowness = kit::slowness_for(known.profile, known.signal).value_or(1.0);
  out.availability = availability(known.verdict);
  return out;
}

optimizer::TrafficState traffic_state(const policy::ClassRow& row, ClusterIndex cluster, ClassIndex c,
                                      const Expected& expected) {
  optimizer::TrafficState out;
  out.cluster = cluster;
  out.service_class = c;
  out.shape = expected.shape;
  out.weigh = {row.ttft_weight, row.tpot_weight};
  out.shed_cost_s = row.shed_cost_seconds;
  out.floor_fraction = row.floor_share;
  out.floor_shed_cost_s = row.shed_cost_seconds * floor_cost_factor;
  return out;
}

void add_objective(const policy::CompiledPolicy& policy, optimizer::FleetState& fleet) {
  const policy::ObjectiveWeights& weights = policy.objective.weights;
  fleet.objective.latency = {weights.ttft, weights.tpot};
  fleet.objective.egress = weights.egress;
  fleet.objective.churn_cost_s = weights.churn * churn_unit_s;
  fleet.limits.load_ceiling = policy.limits.load_ceiling;
}

}  // namespace

std::vector<optimizer::ShareCap> caps_of(const schema::FleetTable& table, const policy::Limits& limits) {
  std::vector<optimizer::ShareCap> out;
  if (limits.engine_weight_cap) {
    out.push_back(
        {std::vector<std::uint32_t>(table.engines.size()), std::max(*limits.engine_weight_cap, least_cap)});
    std::iota(out.back().group.begin(), out.back().group.end(), 0u);
  }
  for (const auto& [level, cap] : limits.domain_caps())
    if (cap) out.push_back({domains_of(table, level), std::max(*cap, least_cap)});
  return optimizer::nested(std::move(out));
}

Facts gather(const kit::TablePtr& table, const kit::PolicyPtr& policy, const kit::Picture& picture,
             const DemandBook& demand, const std::map<ClusterName, WeightMap>& in_force, Instant now,
             PlannedFor what) {
  Facts out{table, policy, now, {}, {}, {}, {}, {}, {}, picture.covers()};
  add_objective(*policy, out.fleet);
  out.fleet.caps = caps_of(*table, policy->limits);
  const Known known(*table, *policy, picture, now);
  for (std::size_t e = 0; e < table->engines.size(); ++e) {
    out.fleet.engines.push_back(engine_state(table->engines[e], known.at(e), now));
    out.health.push_back(known.at(e).verdict ? known.at(e).verdict->state : HealthState::ready);
  }
  for (std::size_t c = 0; c < policy->classes.size(); ++c)
    out.allowed.push_back(kit::allowed_engines(*table, *policy, ClassIndex(c)));
  for (std::size_t from = 0; from < table->clusters.size(); ++from) {
    const ClusterName& cluster = table->clusters[from].name;
    const auto round_trips = kit::round_trips_s(*table, ClusterIndex(from), undeclared_round_trip_s);
    const auto weights = in_force.find(cluster);
    for (std::size_t c = 0; c < policy->classes.size(); ++c) {
      if (out.allowed[c].empty()) continue;
      const Expected expected = demand.of(cluster, ClassIndex(c), now);
      const optimizer::SourceIndex source(out.fleet.traffic.size());
      out.fleet.traffic.push_back(
          traffic_state(policy->classes[c], ClusterIndex(from), ClassIndex(c), expected));
      out.expected.push_back(expected);
      for (const EngineIndex e : out.allowed[c]) {
        const ClusterIndex home = table->engines[e.at()].cluster;
        optimizer::Route route{source, e, round_trips[home.at()]};
        route.egress_s = egress_mb(table->clusters[from], table->clusters[home.at()], expected.shape);
        double share = 0;
        if (weights != in_force.end())
          if (const auto w = weights->second.find({ClassIndex(c), e}); w != weights->second.end())
            share = w->second;
        out.fleet.routes.push_back(route);
        out.in_force.push_back(share);
      }
    }
  }
  plan_for(what, out);
  return out;
}

void plan_for(PlannedFor what, Facts& facts) {
  for (std::size_t s = 0; s < facts.expected.size(); ++s) {
    const Expected& expected = facts.expected[s];
    double& demand = facts.fleet.traffic[s].demand_per_s = expected.planned_per_s;
    if (what != PlannedFor::most) demand = std::min(demand, expected.rate_per_s);
    if (what == PlannedFor::sure) demand = std::min(demand, expected.sure_per_s);
  }
  facts.planned_for = what;
  for (std::size_t r = 0; r < facts.fleet.routes.size(); ++r) {
    optimizer::Route& route = facts.fleet.routes[r];
    route.reference_per_s = facts.in_force[r] * facts.fleet.traffic[route.source.at()].demand_per_s;
  }
}

bool refuses(const optimizer::Problem& problem, const optimizer::Plan& plan) {
  for (std::size_t s = 0; s < problem.sources.size(); ++s)
    if (problem.sources[s].pair_count > 0 &&
        plan.shed_per_s[s] > least_refused * problem.sources[s].demand_per_s)
      return true;
  return false;
}

std::string cause_of(const Facts* before, const Facts& now, bool kept) {
  if (!before) return "the first plan of this term";
  std::vector<std::string> causes;
  if (before->policy->hash != now.policy->hash)
    causes.push_back(fmt::format("policy {}", now.policy->hash.brief()));
  if (before->table->content != now.table->content)
    causes.push_back(fmt::format("fleet table {}", now.table->content.brief()));
  const bool same_rows =
      before->table->content == now.table->content && before->policy->hash == now.policy->hash;
  for (std::size_t e = 0; same_rows && e < now.health.size(); ++e) {
    const EngineName& name = now.table->engines[e].name;
    if (before->health[e] != now.health[e])
      causes.push_back(fmt::format("{} is {}", name, name_of(now.health[e])));
    const double slow = now.fleet.engines[e].step.slowness, was = before->fleet.engines[e].step.slowness;
    if (std::abs(std::log(slow / was)) > 0.1)
      causes.push_back(fmt::format("{} slowness {:.2f} to {:.2f}", name, was, slow));
  }
  if (before->planned_for != now.planned_for)
    causes.push_back(now.planned_for == PlannedFor::most ? "there is room for more than is expected"
                     : now.planned_for == PlannedFor::expected
                         ? "there is room for what is expected, not for more"
                         : "there is room for what is sure, not for more");
  for (std::size_t s = 0; same_rows && s < now.expected.size(); ++s) {
    const double rate = now.expected[s].planned_per_s, was = before->expected[s].planned_per_s;
    if (std::abs(rate - was) > 0.1 * std::max(rate, was) + 0.1)
      causes.push_back(fmt::format("demand of {} in {} {:.1f} to {:.1f}/s",
                                   now.policy->at(now.fleet.traffic[s].service_class).name,
                                   now.table->clusters[now.fleet.traffic[s].cluster.at()].name, was, rate));
  }
  if (causes.empty()) causes.push_back("nothing but the passing of time");
  if (kept) causes.push_back("no weight moves, it would gain too little");
  std::string out = fmt::format("{}", fmt::join(causes, "; "));
  return out.size() <= 512 ? out : out.substr(0, 509) + "...";
}

}  // namespace signalbox::global_optimizer
