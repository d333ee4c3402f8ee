// Watches a world and tells what its control plane must never do. Each rule has a name; a violation says when, which and what.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/cluster_router/routing/view.hpp"
#include "tools/simulate/world/world.hpp"

namespace signalbox::simulate::control {

struct Violation {
  double at_s = 0;
  std::string rule;
  std::string what;
};
std::string text_of(const std::vector<Violation>& violations);

class Checker : public Hooks {
 public:
  explicit Checker(const Scenario& scenario);

  bool deliver(const ProcessPlace& to, schema::Delivery& delivery) override;
  void said(const schema::Message& message, const schema::Envelope& envelope) override;
  Status verified(const ProcessPlace& optimizer, const std::vector<schema::RoutingSnapshot>& plan,
                  const global_optimizer::Facts& facts, Status judged) override;
  void adopt(const ProcessPlace& router, std::shared_ptr<const routing::View>& view) override;
  void started(ProcessPlace& process) override;
  void ended(const Outcome& request) override;
  void look(const World& world) override;

  void begin(const World& world) { world_ = &world; }
  /// What can be told only when all is over, too.
  const std::vector<Violation>& finish();
  /// Of everything that was said, in order: the same seed gives the same.
  std::uint64_t trace() const { return trace_; }

 private:
  using Version = std::pair<ClusterName, SnapshotVersion>;
  struct Verdict {
    HealthState state = HealthState::ready;
    bool isolated = false;
    Instant heard_at;
  };
  /// What an optimizer's machine was told in its present life.
  struct Heard {
    std::map<EngineName, Instant> signals;
    std::map<EngineName, std::map<ProcessName, Verdict>> verdicts;
    struct Report {
      Instant at;
      Incarnation incarnation;
      std::uint64_t number;
    };
    std::map<ProcessName, std::deque<Report>> reports;
  };
  struct RouterNow {
    SnapshotVersion version;
    std::shared_ptr<const schema::RoutingSnapshot> snapshot;
    std::map<Instant, SnapshotVersion> receipts;  ///< said to be in force, not yet looked at
  };

  void violate(std::string rule, std::string what);
  void check_term(const ProcessPlace& optimizer, const Term& term);
  void check_plan(const schema::RoutingSnapshot& snapshot, const ProcessName& author);
  void check_covers(const schema::RoutingSnapshot& snapshot, const Heard& heard, Instant as_of);
  void check_gone(const schema::RoutingSnapshot& snapshot, const Heard& heard, Instant as_of);
  void check_coverage(const schema::RoutingSnapshot& snapshot, const Heard& heard, Instant as_of);
  void check_demand(const schema::RoutingSnapshot& snapshot);
  void check_load(const schema::FleetTable& table);
  void check_ejections(const ProcessPlace& router, const routing::View& view);
  void remember_content(const schema::RoutingSnapshot& snapshot, bool adopted);
  void check_liveness();
  Instant now() const { return world_->now(); }

  const Scenario& scenario_;
  policy::CompiledPolicy policy_;
  const World* world_ = nullptr;
  std::vector<Violation> violations_;
  std::set<std::string> told_;  ///< rules: each is told a few times only
  std::uint64_t trace_ = 14695981039346656037ULL;

  std::map<Version, std::uint64_t> contents_;  ///< of every snapshot said or adopted
  std::set<std::pair<Version, std::uint64_t>> verified_;
  std::map<std::pair<ProcessName, ClusterName>, SnapshotVersion> said_;  ///< by author
  std::map<ProcessName, Heard> heard_;
  std::map<ProcessName, RouterNow> routers_;
  std::map<std::pair<ProcessName, std::size_t>, Instant> out_since_;  ///< by router and engine
  std::vector<Instant> unwell_at_;  ///< by engine: last seen down, frozen or slow
  struct Requests {
    std::size_t offered = 0, retries = 0;
  };
  std::map<std::size_t, Requests> requests_;  ///< by row of the data plane's routers
  std::size_t late_failures_ = 0, late_served_ = 0;
  std::map<std::string, double> rates_;        ///< true, by "cluster class"
  std::map<std::string, Instant> over_since_;  ///< since when plans are for far more, likewise
};

}  // namespace signalbox::simulate::control
