// The alerts that one machine holds up: said when raised, changed or cleared, and repeated while they stand.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "actors/kit/shape/alert_list.hpp"
#include "actors/kit/shape/machine.hpp"

namespace signalbox::kit {

class AlertBook {
 public:
  /// `instance`: of a process with several books the one that this is, such as an engine's name; it becomes part of the
  /// alerts' names.
  explicit AlertBook(std::string_view instance = {}) : instance_(instance) {}

  /// How often a standing alert is repeated, for those who came late.
  static constexpr Duration repeat = 10s;

  /// Raises or updates one. `subject`: the engine, cluster or process that it is about. `look_closer`: in place of the
  /// list's command.
  template <class Command>
  void raise(AlertName name, std::string summary, std::string_view subject, Instant now,
             Effects<Command>& effects, std::string_view look_closer = {}) {
    schema::Alert alert = alert_of(name, std::move(summary), std::string(subject));
    if (!look_closer.empty()) alert.look_closer = look_closer;
    if (!instance_.empty())
      alert.name = ProcessName(fmt::format("{}-{}", alert.name, instance_).substr(0, 64));
    const auto [place, fresh] = standing_.try_emplace(name, Entry{alert, now});
    if (!fresh) {
      place->second.alert = std::move(alert);
      return;
    }
    effects.note("alert_raised", fmt::format("{}: {}", alert.name, alert.summary), alert.severity);
    effects.say(std::move(alert));
  }

  template <class Command>
  void clear(AlertName name, Effects<Command>& effects) {
    const auto place = standing_.find(name);
    if (place == standing_.end()) return;
    place->second.alert.raised = false;
    effects.note("alert_cleared", place->second.alert.name.str());
    effects.say(std::move(place->second.alert));
    standing_.erase(place);
  }

  /// Raises it with this summary, or clears it.
  template <class Command>
  void set(bool stands, AlertName name, std::string summary, std::string_view subject, Instant now,
           Effects<Command>& effects) {
    if (stands)
      raise(name, std::move(summary), subject, now, effects);
    else
      clear(name, effects);
  }

  /// Repeats what stands; call it on each wake.
  template <class Command>
  void repeat_due(Instant now, Effects<Command>& effects) {
    for (auto& [name, entry] : standing_)
      if (now - entry.said >= repeat) {
        entry.said = now;
        effects.say(entry.alert);
      }
  }

  bool stands(AlertName name) const { return standing_.contains(name); }
  std::size_t size() const { return standing_.size(); }

 private:
  struct Entry {
    schema::Alert alert;
    Instant said;
  };
  std::string instance_;
  std::map<AlertName, Entry> standing_;
};

}  // namespace signalbox::kit
