// The feedback-balancer: the controller that fleets come from, behind the same messages as the global-optimizer. Each
// period it nudges every class's weights after the engines' smoothed scores and publishes them as snapshots, so that both
// control planes can be run and compared on the same fleet.
//
// It runs alone: there is no election, and a restart takes the next term.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/feedback_balancer/machine/scores.hpp"
#include "actors/kit/fleet/picture.hpp"
#include "actors/kit/fleet/table.hpp"
#include "actors/kit/shape/machine.hpp"

namespace signalbox::feedback_balancer {

struct Options {
  ProcessName id;
  schema::FleetTable table;
  std::uint64_t epoch = 0;
  Duration period = 1s;
  Duration keep_alive = 1s;
  Tuning tuning;
  std::string kept_term;  ///< what was persisted as `term_name`; empty: nothing
};

struct View {
  kit::Standing standing;
};

class Machine {
 public:
  using Input = kit::None;
  using Command = kit::None;
  using Effects = kit::Effects<Command>;
  static constexpr std::string_view term_name = "term";

  explicit Machine(Options options);
  static const kit::RoleInfo& role_info();

  void on(const schema::Delivery& delivery, Instant now, Effects& effects);
  void on(const Input&, Instant, Effects&) {}
  void on_wake(Instant now, Effects& effects);
  void on_persist_failed(const kit::Persist& failed, Instant now, Effects& effects);
  View view() const;

 private:
  void hear_policy(const schema::Policy& policy);
  void take_term(Effects& effects);
  void balance(Instant now, Effects& effects);
  std::vector<double> loads(Instant now) const;
  schema::RoutingSnapshot snapshot_for(const ClusterName& cluster) const;

  Options options_;
  kit::TablePtr table_;
  kit::PolicyPtr policy_;
  kit::Picture picture_;
  Scores scores_;
  std::vector<std::vector<Place>> rows_;  ///< by ClassIndex
  std::optional<Term> term_;
  std::uint64_t sequence_ = 0;
  Instant plan_due_ = never_yet, alive_due_ = never_yet, table_due_ = never_yet;
};

}  // namespace signalbox::feedback_balancer
