// Every alert that there is: its stable name, how bad it is, whose it is, what it means, and the command that shows more.
// docs/runbook.md has a section for each, under its name.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "messages/schema/health.hpp"

namespace signalbox::kit {

enum class AlertName : std::uint8_t {
  // of optimizers
  plan_held,
  plan_refused,
  coverage_low,
  term_not_kept,
  plan_off,
  plans_diverged,
  limit_not_held,
  coordination_lost,
  // of health-monitors
  engines_out,
  panic,
  signals_stale,
  no_leader,
  leader_flapping,
  routers_diverged,
  authentication_refused,
  loop_late,
  monitor_isolated,
  // of routers
  snapshot_old,
  snapshot_refused,
  state_not_kept,
  engine_untrusted,
  decisions_not_kept,
  retry_budget_empty,
  critical_shed,
  // of the policy-keeper
  policy_refused,
  policy_not_kept,
};

struct AlertKind {
  std::string_view name;
  schema::Severity severity;
  std::string_view owner;
  std::string_view sentence;
  std::string_view look_closer;
};

inline constexpr std::array alert_kinds{
    AlertKind{"plan-held", schema::Severity::critical, "routing",
              "no new plan could be made: the last one is held", "signalbox inspect leader"},
    AlertKind{"plan-refused", schema::Severity::critical, "routing",
              "verification refuses the hold plan too: nothing is published", "signalbox inspect leader"},
    AlertKind{"coverage-low", schema::Severity::critical, "platform",
              "the leader hears too little of the fleet to plan anew", "signalbox inspect engines"},
    AlertKind{"term-not-kept", schema::Severity::critical, "platform",
              "an optimizer cannot write its term to disk", "signalbox inspect leader"},
    AlertKind{"plan-off", schema::Severity::warning, "routing",
              "requests take a fifth longer than plans expect, for three windows or more",
              "signalbox inspect calibration"},
    AlertKind{"plans-diverged", schema::Severity::warning, "routing",
              "a standby that hears the same fleet would plan otherwise than the leader",
              "signalbox inspect leader"},
    AlertKind{"limit-not-held", schema::Severity::warning, "policy",
              "the engines that are left do not suffice to hold a limit of the policy",
              "signalbox inspect weights"},
    AlertKind{"coordination-lost", schema::Severity::critical, "platform",
              "an optimizer does not reach etcd, by which leaders are made", "signalbox inspect leader"},
    AlertKind{"engines-out", schema::Severity::warning, "engines", "engines are suspect or gone",
              "signalbox inspect engines"},
    AlertKind{"panic", schema::Severity::critical, "engines",
              "too few engines look ready: suspicion is ignored by routers", "signalbox inspect engines"},
    AlertKind{"signals-stale", schema::Severity::warning, "platform",
              "the proxies of some engines are silent", "signalbox inspect engines"},
    AlertKind{"no-leader", schema::Severity::critical, "platform", "no optimizer leads",
              "signalbox inspect leader"},
    AlertKind{"leader-flapping", schema::Severity::warning, "platform", "leadership changes again and again",
              "signalbox inspect leader"},
    AlertKind{"routers-diverged", schema::Severity::warning, "platform",
              "routers route by different snapshots for longer than they should",
              "signalbox inspect routers"},
    AlertKind{"authentication-refused", schema::Severity::critical, "security",
              "somebody says what it may not say, or knocks with an unknown key",
              "signalbox tap --message beat --topic beat/forwarder/ --json"},
    AlertKind{"loop-late", schema::Severity::warning, "platform", "a process's event loop is late or hangs",
              "signalbox status"},
    AlertKind{"monitor-isolated", schema::Severity::critical, "platform",
              "a health-monitor hears nobody; its verdicts are held", "signalbox inspect routers"},
    AlertKind{"snapshot-old", schema::Severity::warning, "routing",
              "the snapshot in force is older than the policy likes", "signalbox inspect leader"},
    AlertKind{"snapshot-refused", schema::Severity::critical, "routing", "a router refuses a snapshot",
              "signalbox inspect snapshot"},
    AlertKind{"state-not-kept", schema::Severity::warning, "platform",
              "a router cannot write its state: restarted, it would begin without", "signalbox status"},
    AlertKind{"engine-untrusted", schema::Severity::critical, "security",
              "an engine shows another certificate than the fleet table names", "signalbox inspect engines"},
    AlertKind{"decisions-not-kept", schema::Severity::warning, "platform",
              "a router cannot write its ring file: older decisions cannot be explained", "signalbox status"},
    AlertKind{"retry-budget-empty", schema::Severity::warning, "platform",
              "requests fail without another try: the budget for retries is used up",
              "signalbox inspect engines"},
    AlertKind{"critical-shed", schema::Severity::critical, "policy",
              "requests of a critical class are refused", "signalbox inspect demand"},
    AlertKind{"policy-refused", schema::Severity::critical, "policy",
              "the policy file is wrong; the last good policy stays in force", "signalbox policy check"},
    AlertKind{"policy-not-kept", schema::Severity::warning, "platform",
              "the policy in force cannot be written to disk", "signalbox status"},
};
static_assert(alert_kinds.size() == static_cast<std::size_t>(AlertName::policy_not_kept) + 1);

constexpr const AlertKind& kind_of(AlertName name) { return alert_kinds[static_cast<std::size_t>(name)]; }

/// The alert as it is said, raised.
inline schema::Alert alert_of(AlertName name, std::string summary, std::string subject) {
  const AlertKind& kind = kind_of(name);
  schema::Alert out;
  out.name = ProcessName(kind.name);
  out.severity = kind.severity;
  out.summary = std::move(summary);
  out.look_closer = kind.look_closer;
  out.subject = std::move(subject);
  out.owner = kind.owner;
  out.runbook = "docs/runbook.md#" + std::string(kind.name);
  return out;
}

}  // namespace signalbox::kit
