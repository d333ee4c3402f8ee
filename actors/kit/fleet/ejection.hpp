// How much of the fleet verdicts may take out. A monitor counts its own ejections; whoever acts on verdicts counts them
// again, since a monitor may lie or err: of the engines of one model that are accused although their own signals, said after
// the accusation, still report that they serve, no more are believed to be out than the policy allows.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "actors/kit/fleet/table.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::kit {

/// What caps and panic count within: the engines of a model, and, where a model is served in several regions, those of each.
struct EjectionSet {
  ModelName model;
  std::vector<std::size_t> engines;  ///< rows of the table, ascending
  bool whole = true;                 ///< all that serve the model, not those of one region

  /// How many of them may be out: the policy's share, but at least one.
  std::size_t most_out(const policy::Eject& eject) const;
};
std::vector<EjectionSet> ejection_sets(const schema::FleetTable& table);

/// What speaks against one engine, and for it.
struct Accusation {
  Instant since = end_of_time;  ///< as VerdictBook::accused_since()
  const schema::EngineSignal* signal = nullptr;
  Instant signal_at = never_yet;  ///< when it was said
};

/// By row of the table: the accusations that are not believed. Of several in one set those of the first rows are.
std::vector<bool> overruled(const schema::FleetTable& table, const policy::CompiledPolicy& policy,
                            std::span<const Accusation> accusations, Instant now);

/// What is believed instead.
schema::HealthVerdict instead_of(const schema::HealthVerdict& overruled,
                                 const policy::CompiledPolicy& policy);

/// Puts it in the place of each verdict that is not believed. `rows`: by row of the table, each with its `verdict`; `instead`
/// holds what those point to then.
template <class Row>
void overrule(const schema::FleetTable& table, const policy::CompiledPolicy& policy,
              std::span<const Accusation> accusations, Instant now, std::vector<Row>& rows,
              std::deque<schema::HealthVerdict>& instead) {
  instead.clear();
  const std::vector<bool> out = overruled(table, policy, accusations, now);
  for (std::size_t e = 0; e < out.size(); ++e)
    if (out[e]) rows[e].verdict = &instead.emplace_back(instead_of(*rows[e].verdict, policy));
}

}  // namespace signalbox::kit
