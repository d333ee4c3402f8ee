// The global-optimizer: hears the whole fleet, and while it leads, plans and publishes a snapshot for every cluster each
// period.
//
//   period --gather--> problem --Solve--> child --SolveDone--> snapshots --verify--> published
//                                     \--SolveFailed, refused, late--> hold plan --verify--> published, else nothing
//
// Standbys hear all of it and solve too, now and then: a successor's first plan is as good as any, and a leader that plans
// otherwise than they would, again and again, is noticed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/global_optimizer/machine/calibration.hpp"
#include "actors/global_optimizer/machine/churn.hpp"
#include "actors/global_optimizer/machine/demand.hpp"
#include "actors/global_optimizer/machine/demand_level.hpp"
#include "actors/global_optimizer/machine/echo.hpp"
#include "actors/global_optimizer/machine/election.hpp"
#include "actors/global_optimizer/machine/hold.hpp"
#include "actors/global_optimizer/machine/judge.hpp"
#include "actors/global_optimizer/machine/placing.hpp"
#include "actors/global_optimizer/machine/planner.hpp"
#include "actors/global_optimizer/machine/snapshots.hpp"
#include "actors/global_optimizer/machine/tenure.hpp"
#include "actors/kit/shape/alerts.hpp"
#include "actors/kit/shape/machine.hpp"
#include "optimizer/model/warm.hpp"

namespace signalbox::global_optimizer {

/// Solve this; the answer carries the number.
struct Solve {
  std::uint64_t number = 0;
  optimizer::Problem problem;
  optimizer::WarmState warm;
};

struct SolveDone {
  std::uint64_t number = 0;
  optimizer::Plan plan;
};
struct SolveFailed {
  std::uint64_t number = 0;
  std::string fault;  ///< a stable name
  std::string detail;
};

/// An independent judgement over the snapshots of all clusters together, before they are published.
using Verify = std::function<Status(const std::vector<schema::RoutingSnapshot>& plan, const Facts& facts,
                                    double coverage)>;

struct Options {
  ProcessName id;
  schema::FleetTable table;  ///< as the configuration declares it
  std::uint64_t epoch = 1;   ///< from 1
  Duration period = 1s;
  Duration leader_timeout = 1s;
  Duration keep_alive = 1s;
  std::string kept_term;              ///< what was persisted as `term_name`; empty: nothing
  std::optional<TenureOptions> etcd;  ///< leadership is a lease there; empty: it is agreed upon on the bus
  Verify verify = judge;
};

struct View {
  kit::Standing standing;
  double coverage = 0;
  bool holding = false;
  std::uint64_t failed_solves = 0;  ///< in a row
  schema::Calibration calibration;  ///< of the last window
};

class Machine {
 public:
  using Input = std::variant<SolveDone, SolveFailed, EtcdAnswer>;
  using Command = std::variant<Solve, AskEtcd>;
  using Effects = kit::Effects<Command>;
  static constexpr std::string_view term_name = "term";
  /// Share of the latency that must be gained for weights to move, for one unit of the policy's churn weight.
  static constexpr double least_gain = 0.2;
  static constexpr int rehearse_periods = 2;  ///< from one rehearsal to the next

  explicit Machine(Options options);
  static const kit::RoleInfo& role_info();

  void on(const schema::Delivery& delivery, Instant now, Effects& effects);
  void on(const Input& input, Instant now, Effects& effects);
  void on_wake(Instant now, Effects& effects);
  void on_persist_failed(const kit::Persist& failed, Instant now, Effects& effects);
  View view() const;

 private:
  struct InFlight {
    std::uint64_t number;
    Facts facts;
    optimizer::BuiltProblem built;
    double coverage;
    Instant since;
    bool rehearsal = false;  ///< a standby's, not to be published
  };
  struct Solved {
    optimizer::Problem problem;
    optimizer::Plan plan;
  };

  void hear_policy(const schema::Policy& policy, Instant now, Effects& effects);
  void hear_order(const schema::Order& order, Instant now, Effects& effects);
  void hear_snapshot(const schema::RoutingSnapshot& snapshot, Instant now);
  void set_network(const schema::Order& order, Instant now, Effects& effects);
  void hear_solver(const Input& input, Instant now, Effects& effects);
  /// With etcd: ends a leadership whose time is up, and asks what is to be asked.
  void coordinate(Instant now, Effects& effects);
  void hear_etcd(const EtcdAnswer& answer, Instant now, Effects& effects);
  void watch_etcd(Instant now, Effects& effects);
  void stepped_down(std::string why, Instant now, Effects& effects);
  void lead(Term term, Instant now, Effects& effects);
  /// Why the term is written.
  enum class Keeping : std::uint8_t { to_lead, again };
  void keep_term(Keeping why, Effects& effects);
  void stand_by(Duration rest, Instant now);
  void resign(std::string_view why, Instant now, Effects& effects);
  void plan(Instant now, Effects& effects);
  void give_up_solving(Instant now, Effects& effects);
  /// How long a leader waits for a plan: the hold plan is out before the next one would be.
  Duration patience() const { return options_.period * 4 / 5; }
  Instant solve_due() const {
    return in_flight_ && !in_flight_->rehearsal ? in_flight_->since + patience() : end_of_time;
  }
  void rehearse(Instant now, Effects& effects);
  void rehearsed(InFlight flight, const Input& input, Instant now, Effects& effects);
  void compare(const InFlight& flight, const optimizer::Plan& plan, Instant now, Effects& effects);
  void ask_solver(Facts facts, optimizer::BuiltProblem built, double coverage, bool rehearsal, Instant since,
                  Effects& effects);
  /// Asks the solver again, for less demand, where DemandLevel wants that plan; true if so.
  bool plan_for_less(InFlight& flight, const optimizer::Plan& plan, Instant now, Effects& effects);
  void solve_failed(std::string_view fault, const std::string& detail, const Facts& facts, double coverage,
                    Instant now, Effects& effects);
  void hold(const Facts& facts, double coverage, Instant now, Effects& effects);
  Status publish(std::vector<schema::RoutingSnapshot> snapshots, const Facts& facts, double coverage,
                 std::string cause, Instant now, Effects& effects);
  void say_limits_not_held(const std::vector<schema::RoutingSnapshot>& plan, const Facts& facts, Instant now,
                           Effects& effects);
  void say_keep_alive(Instant now, Effects& effects);
  void calibrate(Instant now, Effects& effects);
  double coverage(Instant now) const;
  Facts look(Instant now, PlannedFor what) const;
  std::map<ClusterName, WeightMap> weights_in_force() const;
  Instant next_due(Instant now) const;

  Options options_;
  kit::TablePtr table_;
  kit::PolicyPtr policy_;
  kit::Picture picture_;
  DemandBook demand_;
  CalibrationBook calibration_;
  ChurnBook churn_;
  Placer placer_;
  std::optional<Election> election_;  ///< from the first wake on
  std::optional<Tenure> tenure_;      ///< with etcd
  Echo echo_;                         ///< likewise
  kit::AlertBook alerts_;
  std::vector<schema::RoutingSnapshot> in_force_;  ///< by cluster, the highest version heard or published
  std::uint64_t sequence_ = 0;
  std::uint64_t number_ = 0;
  std::optional<InFlight> in_flight_;
  std::optional<Solved> solved_;
  DemandLevel demand_level_;
  std::optional<Facts> planned_;  ///< behind the last plan of this term, for the cause of the next
  std::uint64_t failed_solves_ = 0;
  schema::Calibration last_calibration_;
  std::uint64_t differing_ = 0;  ///< rehearsals in a row by which the leader's weights should have moved
  bool solver_fails_ = false;    ///< in the last rehearsal
  Instant rehearse_due_ = never_yet;
  bool holding_ = false;
  std::uint64_t own_counter_ = 0;  ///< of the last term that it stood in
  Keeping keeping_ = Keeping::to_lead;
  bool kept_ = true,
       kept_before_ = true;  ///< the last try to write the term, and the one before, as far as is known
  Instant could_not_lead_at_ = end_of_time;
  bool nobody_else_led_ = false;  ///< since then, when it stood again
  Instant keep_due_ = end_of_time;
  Instant plan_due_ = end_of_time, alive_due_ = end_of_time, table_due_ = end_of_time, tidy_due_ = never_yet;
};

}  // namespace signalbox::global_optimizer
