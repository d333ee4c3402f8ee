// The control side of the cluster-router: gathers what the bus says into views for the event loops, and turns what the
// loops hand out into reports. The loops need none of it to go on serving.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/cluster_router/machine/plans.hpp"
#include "actors/cluster_router/machine/reports.hpp"
#include "actors/cluster_router/machine/sent.hpp"
#include "actors/kit/fleet/ejection.hpp"
#include "actors/kit/fleet/verdicts.hpp"
#include "actors/kit/shape/alerts.hpp"
#include "actors/kit/shape/machine.hpp"

namespace signalbox::cluster_router {

/// An event loop handed out what happened.
struct BatchIn {
  routing::Batch batch;
};
/// The gateway listens, or why not.
struct GatewayState {
  bool listening = false;
  std::string detail;
};

/// Whether decisions are written to the ring file, or why not.
struct DecisionsKept {
  bool kept = true;
  std::string detail;
};

/// Route by this from now on.
struct SwapView {
  std::shared_ptr<const routing::View> view;
};

/// What was persisted; each may be empty.
struct Kept {
  std::string policy;    ///< the policy's text
  std::string table;     ///< the encoded fleet_table
  std::string snapshot;  ///< the encoded routing_snapshot
};

struct Options {
  ProcessName id;
  ClusterName cluster;
  Incarnation incarnation;
  std::uint32_t loops = 1;   ///< event loops of this router
  std::uint64_t epoch = 1;   ///< from 1
  schema::FleetTable table;  ///< as the configuration declares it
  Kept kept;
  GatewayState gateway;  ///< as it is already known
  Duration report = 500ms;
  Duration share = 250ms;
};

struct View {
  kit::Standing standing;
  std::shared_ptr<const routing::View> view;
};

class Machine {
 public:
  using Input = std::variant<BatchIn, GatewayState, DecisionsKept>;
  using Command = SwapView;
  using Effects = kit::Effects<Command>;
  static constexpr std::string_view policy_name = "policy", table_name = "table", snapshot_name = "snapshot";

  explicit Machine(Options options);
  static const kit::RoleInfo& role_info();

  void on(const schema::Delivery& delivery, Instant now, Effects& effects);
  void on(const Input& input, Instant now, Effects& effects);
  void on_wake(Instant now, Effects& effects);
  void on_persist_failed(const kit::Persist& failed, Instant now, Effects& effects);
  View view() const;

 private:
  struct Heard {
    std::optional<schema::EngineSignal> signal;
    Instant signal_at = never_yet;  ///< the time that it describes
    Instant said_at = never_yet;
    std::optional<schema::EngineProfile> profile;
    std::optional<schema::CacheDigest> cache;
  };

  void start(Instant now, Effects& effects);
  void hear(const schema::Policy& policy, Instant now, Effects& effects);
  void hear(const schema::FleetTable& table, Instant now, Effects& effects);
  void hear(const schema::RoutingSnapshot& snapshot, Duration age, Instant now, Effects& effects);
  void hear(const schema::EngineSignal& signal, Duration age, Instant now);
  void hear(const schema::Interest& interest, const ProcessName& forwarder, Instant now);
  routing::Publish wanted() const;
  void answer(const schema::RoutingSnapshot& snapshot, const Judgement& judgement, Instant now,
              Effects& effects);
  void settle(Instant now, Effects& effects);
  void keep(Instant now, Effects& effects);
  void report(Instant now, Effects& effects);
  void say_receipt(schema::ReceiptReason reason, const SnapshotVersion& version, std::string detail,
                   Effects& effects);
  void rebuild(Instant now, Effects& effects);
  routing::ViewInputs inputs(Instant now);
  void watch_age(Instant now, Effects& effects);
  void watch_traffic(const routing::Batch& batch, Instant now, Effects& effects);
  void calm_down(Instant now, Effects& effects);
  void watch_identities(const routing::Batch& batch, Instant now, Effects& effects);
  Instant next_due(Instant now) const;
  /// Asks for a new view, at once or with the next readings.
  void want_view(Instant when) { view_due_ = std::min(view_due_, when); }

  Options options_;
  Plans plans_;
  Reports reports_;
  SentBook sent_;
  kit::VerdictBook verdicts_;
  std::deque<schema::HealthVerdict> instead_;  ///< of verdicts that are not believed
  kit::AlertBook alerts_;
  std::map<EngineName, Heard> engines_;
  std::map<EngineName, std::string> untrusted_;  ///< engines that showed a wrong certificate last, and which
  std::map<ProcessName, std::pair<routing::Publish, Instant>> interests_;  ///< by forwarder, when heard last
  std::map<ProcessName, Instant> routers_;                                 ///< others, when heard last
  std::shared_ptr<const routing::View> view_;
  std::string policy_text_;  ///< of plans_.policy() or the one that waits
  std::string kept_policy_;
  Digest kept_table_;
  SnapshotVersion kept_snapshot_;
  Instant view_due_ = end_of_time, keep_due_ = end_of_time;
  Instant report_due_ = never_yet, share_due_ = never_yet, tidy_due_ = never_yet;
  Instant reported_at_ = never_yet;
  Instant budget_empty_at_ = never_yet, critical_shed_at_ = never_yet;  ///< last
  bool started_ = false;
  GatewayState gateway_;
};

}  // namespace signalbox::cluster_router
