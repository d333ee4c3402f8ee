// The alerts that one machine holds up: said when raised, changed or cleared, and repeated while they stand.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "actors/kit/shape/machine.hpp"

namespace signalbox::kit {

class AlertBook {
 public:
  /// How often a standing alert is repeated, for those who came late.
  static constexpr Duration repeat = 10s;

  /// Raises or updates `name` (a plain name). `look_closer` is the command that shows more.
  template <class Command>
  void raise(std::string_view name, schema::Severity severity, std::string summary,
             std::string_view look_closer, std::string_view subject, Instant now, Effects<Command>& effects) {
    schema::Alert alert{ProcessName(name),   true, severity, std::move(summary), std::string(look_closer),
                        std::string(subject)};
    auto [place, fresh] = standing_.try_emplace(std::string(name), Entry{alert, now});
    if (!fresh && place->second.alert.severity == severity) {
      place->second.alert.summary = std::move(alert.summary);
      return;
    }
    place->second = {alert, now};
    effects.note("alert_raised", fmt::format("{}: {}", name, alert.summary), severity);
    effects.say(std::move(alert));
  }

  template <class Command>
  void clear(std::string_view name, Effects<Command>& effects) {
    const auto place = standing_.find(std::string(name));
    if (place == standing_.end()) return;
    place->second.alert.raised = false;
    effects.note("alert_cleared", std::string(name));
    effects.say(std::move(place->second.alert));
    standing_.erase(place);
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

  bool stands(std::string_view name) const { return standing_.contains(std::string(name)); }
  std::size_t size() const { return standing_.size(); }

 private:
  struct Entry {
    schema::Alert alert;
    Instant said;
  };
  std::map<std::string, Entry> standing_;
};

}  // namespace signalbox::kit
