#include "tools/fleet_view/timeline.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

namespace signalbox::fleet_view {
namespace {

using schema::Severity;

Severity severity_of(HealthState state) {
  switch (state) {
    case HealthState::gone:
    case HealthState::suspect: return Severity::critical;
    case HealthState::degraded:
    case HealthState::draining: return Severity::warning;
    case HealthState::starting:
    case HealthState::ready: return Severity::info;
  }
  return Severity::info;
}

}  // namespace

void Timeline::note(EventKind kind, const std::string& subject, std::string to, std::string detail,
                    Severity severity, Instant at) {
  std::string& known = known_[{kind, subject}];
  if (known == to) return;
  events_.push_back({at, kind, subject, known, to, std::move(detail), severity});
  known = std::move(to);
  ++noted_;
  if (events_.size() > most_events) events_.pop_front();
}

void Timeline::on(const schema::Delivery& delivery, Instant now) {
  const Instant said = now - delivery.age;
  const std::string& from = delivery.envelope.source.str();
  std::visit(
      [&]<class T>(const T& m) {
        if constexpr (std::is_same_v<T, schema::HealthVerdict>) {
          note(EventKind::health, m.engine.str(), std::string(name_of(m.state)),
               fmt::format("{}: {}", name_of(m.evidence),
                           m.detail.empty() ? sentence_of(m.evidence) : m.detail),
               severity_of(m.state), said);
        } else if constexpr (std::is_same_v<T, schema::Beat>) {
          const bool is_new = !known_.contains({EventKind::process, from});
          note(EventKind::process, from, m.ready ? "ready" : "not ready",
               is_new ? fmt::format("{}, first heard", name_of(m.role)) : m.state,
               m.ready ? Severity::info : Severity::warning, said);
          if (m.role == Role::global_optimizer || m.role == Role::feedback_balancer)
            note(EventKind::leader, from,
                 m.leads ? fmt::format("leads in term {}", m.term.counter) : "stands by", m.state,
                 Severity::info, said);
        } else if constexpr (std::is_same_v<T, schema::RoutingSnapshot>) {
          note(EventKind::plan, m.cluster.str(), std::string(name_of(m.kind)), m.cause,
               m.kind == schema::PlanKind::hold ? Severity::warning : Severity::info, said);
        } else if constexpr (std::is_same_v<T, schema::Alert>) {
          note(EventKind::alert, fmt::format("{} by {}", m.name, from), m.raised ? "raised" : "cleared",
               m.summary, m.raised ? m.severity : Severity::info, said);
        } else if constexpr (std::is_same_v<T, schema::Policy>) {
          note(EventKind::policy, m.name, fmt::format("version {} {}", m.version, m.hash.brief()), "",
               Severity::info, said);
        }
      },
      delivery.message);
}

Table Timeline::table(Instant now) const {
  Table out{"timeline", {{"ago_s", 1}, {"kind"}, {"subject"}, {"from"}, {"to"}, {"detail"}}, {}};
  for (const Event& event : events_)
    out.rows.push_back({to_seconds(now - event.at), cell(name_of(event.kind)), event.subject, event.from,
                        event.to, event.detail});
  return out;
}

}  // namespace signalbox::fleet_view
