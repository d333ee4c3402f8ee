#include "actors/kit/fleet/ejection.hpp"

#include <algorithm>
#include <map>

namespace signalbox::kit {

std::size_t EjectionSet::most_out(const policy::Eject& eject) const {
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(eject.max_share * static_cast<double>(engines.size())));
}

std::vector<EjectionSet> ejection_sets(const schema::FleetTable& table) {
  std::map<ModelName, std::map<std::string, std::vector<std::size_t>>> by_model;
  for (std::size_t i = 0; i < table.engines.size(); ++i)
    for (const ModelName& model : table.engines[i].models)
      by_model[model][table.clusters[table.engines[i].cluster.at()].region.str()].push_back(i);
  std::vector<EjectionSet> out;
  for (const auto& [model, by_region] : by_model) {
    EjectionSet whole{model, {}, true};
    for (const auto& [region, engines] : by_region) {
      whole.engines.insert(whole.engines.end(), engines.begin(), engines.end());
      if (by_region.size() > 1) out.push_back({model, engines, false});
    }
    std::sort(whole.engines.begin(), whole.engines.end());
    out.push_back(std::move(whole));
  }
  return out;
}

namespace {

/// The engine says after it was accused that it serves.
bool contradicted(const Accusation& a, const policy::Stale& stale, Instant now) {
  return a.since != end_of_time && a.signal != nullptr && a.signal->scrape == schema::ScrapeState::ok &&
         a.signal_at > a.since && now - a.signal_at <= stale.signal_hard;
}

}  // namespace

std::vector<bool> overruled(const schema::FleetTable& table, const policy::CompiledPolicy& policy,
                            std::span<const Accusation> accusations, Instant now) {
  std::vector<bool> doubtful, out(accusations.size());
  for (const Accusation& a : accusations) doubtful.push_back(contradicted(a, policy.stale, now));
  // As a rule nothing is, and the sets of a large fleet need not be made.
  if (std::count(doubtful.begin(), doubtful.end(), true) < 2) return out;
  for (const EjectionSet& set : ejection_sets(table)) {
    std::size_t believed = 0;
    for (const std::size_t e : set.engines)
      if (doubtful[e] && !out[e] && ++believed > set.most_out(policy.eject)) out[e] = true;
  }
  return out;
}

schema::HealthVerdict instead_of(const schema::HealthVerdict& overruled,
                                 const policy::CompiledPolicy& policy) {
  schema::HealthVerdict out;
  out.engine = overruled.engine;
  out.incarnation = overruled.incarnation;
  out.state = HealthState::degraded;
  out.capacity_factor = policy.health.degraded_capacity;
  out.since = overruled.since;
  out.evidence = schema::Evidence::ejection_capped;
  out.detail = "its own signals say that it serves, and enough engines of its model are out already";
  return out;
}

}  // namespace signalbox::kit
