#include "actors/global_optimizer/machine/reserves.hpp"

#include <algorithm>

#include "actors/global_optimizer/machine/ceilings.hpp"

namespace signalbox::global_optimizer {

namespace {

bool lies_in(const schema::FleetTable& table, EngineIndex e, const policy::Reserve& limit) {
  if (!limit.level) return true;
  const schema::EngineRow& engine = table.engines[e.at()];
  const schema::ClusterRow& home = table.clusters[engine.cluster.at()];
  switch (*limit.level) {
    case policy::DomainLevel::rack: return engine.rack == limit.place;
    case policy::DomainLevel::cluster: return home.name.str() == limit.place.str();
    case policy::DomainLevel::region: return home.region == limit.place;
    default: return home.zone == limit.place;
  }
}

/// Whether the engines have room for the class; `load`: all that they carry, by EngineIndex.
bool has_room(const policy::Reserve& limit, const std::vector<schema::RoutingSnapshot>& plan,
              const Facts& facts, const std::vector<double>& load) {
  double rate = 0, room = 0;
  for (const auto& snapshot : plan)
    for (const schema::AdmitRow& admit : snapshot.admits)
      if (admit.request_class == limit.of) rate += admit.planned_rps;
  if (rate <= 0) return true;
  for (const EngineIndex e : facts.allowed[limit.of.at()]) {
    if (!lies_in(*facts.table, e, limit)) continue;
    double own = 0, work = 0;
    for (const auto& snapshot : plan) {
      const auto admit = std::ranges::find(snapshot.admits, limit.of, &schema::AdmitRow::request_class);
      if (admit == snapshot.admits.end()) continue;
      const double each = work_of(facts, *admit, e);
      work += admit->planned_rps / rate * each;
      for (const schema::WeightRow& row : snapshot.weights)
        if (row.request_class == limit.of && row.engine == e)
          own += admit->planned_rps * admit->admit * row.weight * each;
    }
    if (work > 0) room += std::max(0.0, load_ceiling(facts, e) - std::max(0.0, load[e.at()] - own)) / work;
  }
  return room >= limit.factor * rate * (1 - 1e-9);
}

}  // namespace

void check_reserves(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts) {
  if (facts.policy->limits.reserves.empty()) return;
  const auto load = loads_of(plan, facts);
  for (const policy::Reserve& limit : facts.policy->limits.reserves) {
    const auto& engines = facts.allowed[limit.of.at()];
    const auto there =
        std::ranges::find_if(engines, [&](EngineIndex e) { return lies_in(*facts.table, e, limit); });
    if (there != engines.end() && !has_room(limit, plan, facts, load))
      plan.front().limits.push_back({limit.of, *there, schema::PolicyLimit::capacity, 0, false});
  }
}

}  // namespace signalbox::global_optimizer
