// What a control process believes of the fleet's engines and routers: the latest words on each, and how old they are.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "actors/kit/fleet/table.hpp"
#include "actors/kit/fleet/verdicts.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::kit {

class Picture {
 public:
  /// What is known of one engine now. Pointers live until the next hear().
  struct EngineNow {
    const schema::EngineSignal* signal = nullptr;  ///< however old
    Instant heard_at = never_yet;                  ///< when its proxy last spoke of it
    const schema::EngineProfile* profile = nullptr;
    const schema::HealthVerdict* verdict = nullptr;
    Instant accused_since = end_of_time;  ///< by that verdict
  };

  /// Takes signals, profiles, farewells, verdicts and outcome reports; true if a verdict changed.
  bool hear(const schema::Delivery& delivery, Instant now);
  EngineNow of(const EngineName& engine, Instant now) const;
  /// Share of the table's engines whose proxy spoke within `fresh`.
  double coverage(const schema::FleetTable& table, Duration fresh, Instant now) const;
  /// The last outcome report heard of each router, for snapshots.
  std::vector<schema::CoverRow> covers() const;
  void forget_old(Instant now);

 private:
  struct Engine {
    std::optional<schema::EngineSignal> signal;
    std::optional<schema::EngineProfile> profile;
    Instant heard_at = never_yet;
  };
  struct Cover {
    schema::CoverRow row;
    Instant heard_at;
  };
  std::map<EngineName, Engine> engines_;
  std::map<ProcessName, Cover> covers_;
  VerdictBook verdicts_;
};

}  // namespace signalbox::kit
