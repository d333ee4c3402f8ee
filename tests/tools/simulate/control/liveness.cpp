// What must be so once all faults have ended: the fleet is as if nothing had been.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/tools/simulate/control/checker.hpp"
#include "tests/tools/simulate/control/schedule.hpp"

namespace signalbox::simulate::control {

namespace {

/// Two standard deviations of what comes in four seconds are chance, and plans follow a lull of that length.
double least_planned(double rate_per_s) { return std::max(0.0, 0.6 * rate_per_s - std::sqrt(rate_per_s)); }

}  // namespace

void Checker::check_liveness() {
  std::vector<const World::ProcessNow*> leaders;
  const auto processes = world_->processes();
  for (const auto& process : processes) {
    if (!process.up || !process.standing.ready)
      violate("ready", fmt::format("{} is not ready: {}", process.place.name,
                                   process.up ? process.standing.state : "down"));
    if (process.role == Role::global_optimizer && process.standing.leads) leaders.push_back(&process);
  }
  if (leaders.size() != 1) return violate("one_leader", fmt::format("{} lead", leaders.size()));
  const kit::Standing& leader = leaders.front()->standing;
  for (const auto& process : processes)
    if (process.up && process.role == Role::global_optimizer && process.standing.term != leader.term)
      violate("one_leader", fmt::format("{} believes in term {} of {}, not in {} of {}", process.place.name,
                                        process.standing.term.counter, process.standing.term.optimizer,
                                        leader.term.counter, leader.term.optimizer));
  for (const auto& [name, router] : routers_) {
    if (!router.snapshot) {
      violate("plan_in_force", fmt::format("{} has no plan", name));
      continue;
    }
    const SnapshotVersion& version = router.snapshot->version;
    if (version.term != leader.term || version.sequence + 2 < leader.snapshot.sequence)
      violate("plan_in_force", fmt::format("{} has {}, the leader is at {}", name, version, leader.snapshot));
    if (router.snapshot->kind != schema::PlanKind::optimal)
      violate("plan_in_force", fmt::format("{} has a plan that only holds", name));
    for (const schema::AdmitRow& row : router.snapshot->admits) {
      const auto rate = rates_.find(fmt::format("{} {}", router.snapshot->cluster, row.request_class.value));
      if (rate != rates_.end() && row.planned_rps < least_planned(rate->second))
        violate("demand", fmt::format("{} is planned for {:.1f}/s of class {}, {:.1f}/s come", name,
                                      row.planned_rps, row.request_class.value, rate->second));
    }
  }
  if (late_failures_ > 0)
    violate("served",
            fmt::format("{} of {} requests were not served", late_failures_, late_failures_ + late_served_));
  if (late_served_ == 0) violate("served", "nobody was served");
}

}  // namespace signalbox::simulate::control
