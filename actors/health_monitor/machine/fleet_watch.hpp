// What a monitor sees of the fleet's own processes: is there a leader, do routers follow it, do event loops turn, does
// somebody knock who has no key. It only raises alerts: engines are judged elsewhere.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "actors/kit/shape/alerts.hpp"
#include "actors/kit/shape/machine.hpp"

namespace signalbox::health_monitor {

class FleetWatch {
 public:
  /// Takes beats and keep-alives.
  void hear(const schema::Delivery& delivery, Instant now);
  /// The monitor slept: nobody was silent in that time.
  void forgive(Duration lateness);

  template <class Command>
  void alerts(kit::AlertBook& book, std::string_view self, Instant now, kit::Effects<Command>& effects) {
    forget_old(now);
    using kit::AlertName;
    const auto set = [&](AlertName name, const std::string& what) {
      book.set(!what.empty(), name, what, self, now, effects);
    };
    set(AlertName::no_leader, leaderless(now));
    set(AlertName::leader_flapping, flapping());
    set(AlertName::routers_diverged, diverged(now));
    set(AlertName::loop_late, late_loops());
    set(AlertName::authentication_refused, refused(now));
  }

 private:
  struct Process {
    schema::Beat beat;
    Instant heard_at;
  };
  /// Messages that a forwarder refused: the count at the start of a window, and when it rose last by much.
  struct Refused {
    std::uint64_t before = 0;
    Instant since = never_yet, rose_at = never_yet;
  };
  void hear(const schema::Beat& beat, Instant now);
  void count_refused(const schema::Beat& beat, Instant now);
  void forget_old(Instant now);
  // In words what is wrong, or nothing.
  std::string leaderless(Instant now) const;
  std::string flapping() const;
  std::string diverged(Instant now) const;
  std::string late_loops() const;
  std::string refused(Instant now) const;

  std::map<ProcessName, Process> processes_;
  std::map<ProcessName, Refused> refused_;
  Instant began_ = never_yet;
  Instant led_at_ = never_yet;  ///< the last keep-alive
  Term term_;
  std::deque<Instant> changes_;                               ///< of leadership
  std::deque<std::pair<SnapshotVersion, Instant>> versions_;  ///< in force, since when
};

}  // namespace signalbox::health_monitor
