// What changed in the fleet, in order: verdicts, leaders, kinds of plans, alerts, processes. The same messages give the
// same timeline, wherever and however fast they are heard.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "messages/base/described.hpp"
#include "messages/schema/catalog.hpp"
#include "tools/fleet_view/table.hpp"

namespace signalbox::fleet_view {

enum class EventKind : std::uint8_t { health, leader, plan, alert, process, policy };

struct Event {
  Instant at;  ///< when it was said, by the listener's clock
  EventKind kind = EventKind::health;
  std::string subject;  ///< the engine, optimizer, cluster, alert or process
  std::string from;     ///< empty: nothing was known before
  std::string to;
  std::string detail;
  schema::Severity severity = schema::Severity::info;
};

class Timeline {
 public:
  static constexpr std::size_t most_events = 5000;

  void on(const schema::Delivery& delivery, Instant now);
  /// Oldest first.
  const std::deque<Event>& events() const { return events_; }
  /// Counts every event ever noted: how many of them are new to who knows this number.
  std::uint64_t noted() const { return noted_; }

  /// Events as a table, with their age at `now`.
  Table table(Instant now) const;

 private:
  /// Notes that `subject` is now `to`, unless it is that already.
  void note(EventKind kind, const std::string& subject, std::string to, std::string detail,
            schema::Severity severity, Instant at);

  std::deque<Event> events_;
  std::uint64_t noted_ = 0;
  std::map<std::pair<EventKind, std::string>, std::string> known_;
};

}  // namespace signalbox::fleet_view

template <>
struct signalbox::EnumTable<signalbox::fleet_view::EventKind> {
  static constexpr std::array rows{
      EnumRow{"health", "a monitor judges an engine otherwise"},
      EnumRow{"leader", "another optimizer leads, or one leads no more"},
      EnumRow{"plan", "a cluster's plan is of another kind"},
      EnumRow{"alert", "an alert was raised or cleared"},
      EnumRow{"process", "a process started, stopped working, or works again"},
      EnumRow{"policy", "another policy is in force"},
  };
};
