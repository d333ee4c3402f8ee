// What one engine's evidence says, before hysteresis and caps: the worst finding counts.
#pragma once

#include <string>

#include "actors/health_monitor/machine/probes.hpp"
#include "cluster-config/policy/compiled.hpp"
#include "messages/base/time.hpp"
#include "messages/base/words.hpp"
#include "messages/schema/health.hpp"
#include "messages/schema/signals.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::health_monitor {

/// What routers report of an engine, as counts that fade with `memory`. A client's 4xx is no evidence and never in here.
class Outcomes {
 public:
  static constexpr Duration memory = 3s;
  /// How long a success speaks for the engine: a few reports of a router.
  static constexpr Duration vouching = 2s;

  void hear(const schema::OutcomeRow& row, Instant now);
  void clear() { *this = {}; }
  /// Routers saw it begin or end an answer well a moment ago.
  bool vouch(Instant now) const { return good_at_ != never_yet && now - good_at_ <= vouching; }
  /// No router has used it for this long.
  Duration idle_for(Instant now) const { return used_at_ == never_yet ? Duration::max() : now - used_at_; }
  double succeeded(Instant now) const { return succeeded_ * fade(now); }
  /// No connection, or one lost before the answer's head.
  double unreached(Instant now) const { return unreached_ * fade(now); }
  double failed(Instant now) const { return failed_ * fade(now); }  ///< all failures, `unreached` included

 private:
  double fade(Instant now) const;
  double succeeded_ = 0, unreached_ = 0, failed_ = 0;
  Instant at_ = never_yet, good_at_ = never_yet, used_at_ = never_yet;
};

/// All that is known of one engine at one instant.
struct Evidence {
  const schema::EngineSignal* signal = nullptr;     ///< the last one; null: none yet
  Duration silence{};                               ///< since its proxy last spoke of it, or since we listen
  double suspicion = 0;                             ///< phi of that silence
  bool proxy_lives = true;                          ///< its proxy beats
  Duration stuck{};                                 ///< how long it has had requests while no token moved
  bool vouched = false;                             ///< see Outcomes
  double succeeded = 0, unreached = 0, failed = 0;  ///< likewise
  Eye eye;                                          ///< of the monitor itself
  bool drain_ordered = false;
};

struct Finding {
  HealthState state = HealthState::ready;
  schema::Evidence evidence = schema::Evidence::signals_fresh;
  std::string detail;
  double suspicion =
      0;  ///< phi of the silence: -log10 of the chance that a healthy proxy is silent for this long
  bool confirmed = false;  ///< two who look for themselves find it unreachable: no cap protects it
};

/// Busy is not dead: an engine that answers late or queues is at most degraded while routers see it succeed.
Finding judge(const Evidence& evidence, const policy::Stale& stale);

}  // namespace signalbox::health_monitor
