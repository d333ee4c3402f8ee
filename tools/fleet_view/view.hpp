// What an observer makes of everything said on the bus: the latest of each, and how old it is. Pure: the status table,
// `inspect` and the console show the same view.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster-config/policy/compiled.hpp"
#include "messages/schema/catalog.hpp"
#include "tools/fleet_view/fields.hpp"

namespace signalbox::fleet_view {

/// The latest message of one speaker.
template <class T>
struct Heard {
  T message;
  ProcessName from;
  Instant at;           ///< when it arrived
  Duration age_then{};  ///< how old it was then

  Duration age(Instant now) const { return age_then + (now - at); }
};

class FleetView {
 public:
  void on(const schema::Delivery& delivery, Instant now);

  std::map<ProcessName, Heard<schema::Beat>> beats;
  std::map<EngineName, Heard<schema::EngineSignal>> signals;
  std::map<std::pair<EngineName, ProcessName>, Heard<schema::HealthVerdict>>
      verdicts;                                                     ///< by engine, monitor
  std::map<Digest, Heard<schema::FleetTable>> tables;               ///< by content
  std::map<ClusterName, Heard<schema::RoutingSnapshot>> snapshots;  ///< highest versions
  std::map<ProcessName, Heard<schema::KeepAlive>> keep_alives;
  std::map<ProcessName, Heard<schema::SnapshotReceipt>> receipts;  ///< by router
  std::map<ProcessName, Heard<schema::DemandReport>> demands;      ///< by router
  std::map<ProcessName, Heard<schema::OutcomeReport>> outcomes;    ///< by router
  /// Raised ones, by name and who raised them.
  std::map<std::pair<ProcessName, ProcessName>, Heard<schema::Alert>> alerts;
  std::map<ProcessName, Heard<schema::Calibration>> calibrations;
  std::map<EngineName, Heard<schema::CacheDigest>> caches;
  std::map<EngineName, std::uint64_t>
      sent_blocks;  ///< prompt blocks sent there, as routers shared while we listened
  std::optional<Heard<schema::Policy>> policy;
  std::optional<policy::CompiledPolicy> compiled;  ///< of `policy`, if its text compiles

  /// The table that a snapshot's rows index; nullptr if it was not heard.
  const schema::FleetTable* table(const Digest& content) const;
  /// The newest table, whoever said it; nullptr if none was heard.
  const schema::FleetTable* newest_table() const;
  /// The verdict that was sent last, whichever monitor sent it; nullptr if none was heard.
  const Heard<schema::HealthVerdict>* verdict(const EngineName& engine) const;
  /// The optimizer that says it leads, in the highest term; nullptr if none does.
  const Heard<schema::Beat>* leader() const;
  /// Names of rows, or "#row" where the table or policy that they index is not known.
  std::string engine_name(const Digest& table, EngineIndex row) const;
  std::string class_name(const Digest& policy_hash, ClassIndex row) const;
  /// These, for those who look into messages; valid as long as this view.
  RowNames names() const;
};

}  // namespace signalbox::fleet_view
