// The health-monitor: one verdict per engine, from its proxy's signals, their silence, and what routers report.
//
// A monitor that lost its senses must not take the fleet with it, so three rules stand over every finding. It may take
// out, by its own judgement, only the policy's share of the engines that serve a model; what is over that share is called
// degraded, oldest fall first; the same holds within each region. An engine that its proxy and either the routers or the
// monitor's own probes found unreachable is out of the cap: that is no judgement. A monitor that hears nobody repeats its
// last verdicts and says that it is isolated.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/health_monitor/machine/fleet_watch.hpp"
#include "actors/health_monitor/machine/patient.hpp"
#include "actors/kit/fleet/ejection.hpp"
#include "actors/kit/shape/alerts.hpp"
#include "actors/kit/shape/machine.hpp"

namespace signalbox::health_monitor {

struct Options {
  ProcessName id;
  schema::FleetTable table;
  Duration repeat = 1s;   ///< how often a verdict is said again
  Duration look = 100ms;  ///< how often everything is judged anew
  Duration probe = 5s;    ///< between own probes of an engine that nobody doubts; zero: none
  /// Nobody at all was heard for so long: it may be this process that is cut off, and no silence is judged.
  Duration hush = 1h;
};
/// Every process beats: who misses this many beats of all of them may be cut off.
inline constexpr int hush_beats = 3;

struct EngineView {
  EngineName engine;
  HealthState state = HealthState::starting;
  schema::Evidence evidence = schema::Evidence::none;
  double capacity_factor = 0;
};

struct View {
  kit::Standing standing;
  bool isolated = false;
  std::vector<EngineView> engines;  ///< in the table's order
};

class Machine {
 public:
  using Input = Probed;
  using Command = Probe;
  using Effects = kit::Effects<Command>;

  explicit Machine(Options options);
  static const kit::RoleInfo& role_info();

  void on(const schema::Delivery& delivery, Instant now, Effects& effects);
  void on(const Input& answer, Instant now, Effects& effects);
  void on_wake(Instant now, Effects& effects);
  void on_persist_failed(const kit::Persist&, Instant, Effects&) {}
  View view() const;

 private:
  struct Row {
    Patient patient;
    Finding finding;
    double factor = 0;
    bool doubted = false;  ///< before any cap
    Instant say_at = never_yet;
    bool changed = true;
  };

  void hear_outcomes(const schema::OutcomeReport& report, Instant now);
  void hear_policy(const schema::Policy& policy);
  void hear_order(const schema::Order& order, Effects& effects);
  void look(Instant now, Effects& effects);
  void forgive(Duration lateness);
  bool hears_nobody_for(Duration silence, Instant now) const;
  void cap_ejections(std::vector<Finding>& findings) const;
  void probe(Instant now, Effects& effects);
  Probe probe_of(EngineIndex engine, ProbeKind kind) const;
  std::size_t out_of(const kit::EjectionSet& set) const;
  void say_verdicts(Instant now, Effects& effects);
  void alerts(Instant now, Effects& effects);
  bool proxy_lives(const ProcessName& proxy, Instant now) const;

  Options options_;
  kit::PolicyPtr policy_;
  kit::AlertBook alerts_;
  std::vector<Row> rows_;               ///< by EngineIndex
  std::vector<kit::EjectionSet> sets_;  ///< what caps and panic count within
  FleetWatch watch_;
  std::map<std::uint64_t, std::size_t> probing_;  ///< number of an open probe -> row
  std::uint64_t probes_ = 0;
  std::map<ProcessName, Instant> beats_;
  Instant heard_anything_ = never_yet;
  Instant due_ = never_yet;
  bool started_ = false;
  bool isolated_ = false;
};

}  // namespace signalbox::health_monitor
