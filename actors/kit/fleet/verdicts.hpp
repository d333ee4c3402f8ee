// The verdicts of all monitors on all engines, merged.
//
// The rule: of the monitors that were heard within `fresh` and do not call themselves isolated, the one that thinks best of
// the engine counts, ties by capacity, then by the monitor's id. So a monitor that lies or is cut off cannot take engines
// away while another vouches for them, and the last words of one that died do not vouch for long. If only isolated
// monitors speak, their verdicts (which repeat what was in force) count; if none speaks, last words do, for `lifetime`.
#pragma once

#include <map>
#include <vector>

#include "messages/schema/catalog.hpp"

namespace signalbox::kit {

class VerdictBook {
 public:
  static constexpr Duration fresh = 3s;      ///< a verdict is repeated each second
  static constexpr Duration lifetime = 15s;  ///< of a verdict that is not repeated

  /// True if the merged verdict of its engine may have changed in more than its wording.
  bool hear(const schema::HealthVerdict& verdict, const ProcessName& monitor, Duration age, Instant now);
  /// The verdict in force; nullptr when no monitor has spoken lately. Valid until the next hear() or forget().
  const schema::HealthVerdict* of(const EngineName& engine, Instant now) const;
  /// Since when the monitor whose word counts has called the engine suspect or gone, as heard here; `end_of_time` if it
  /// does not.
  Instant accused_since(const EngineName& engine, Instant now) const;
  void forget_old(Instant now);

 private:
  struct Entry {
    schema::HealthVerdict verdict;
    Instant said;
    Instant accused_since = end_of_time;
  };
  const Entry* entry_of(const EngineName& engine, Instant now) const;
  std::map<EngineName, std::map<ProcessName, Entry>> entries_;
};

/// From best to worst: ready, degraded, starting, draining, suspect, gone. An ordered drain is never overruled by a
/// monitor that has not heard of it.
int badness(HealthState state);

/// Whether new requests may go there: all but gone, draining and suspect.
bool may_serve(HealthState state);

/// Whether a monitor took the engine out by its own judgement.
constexpr bool is_accused(HealthState state) {
  return state == HealthState::suspect || state == HealthState::gone;
}

}  // namespace signalbox::kit
