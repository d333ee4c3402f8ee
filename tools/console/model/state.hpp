// The fleet as the page wants it: JSON, with one array for each column of the engines so that thousands of them are small.
#pragma once

#include <optional>
#include <string>

#include "tools/console/model/history.hpp"
#include "tools/fleet_view/timeline.hpp"
#include "tools/fleet_view/view.hpp"

namespace signalbox::console {

/// What the page needs to know beside the fleet.
struct Frame {
  std::string version;  ///< changes when the page has to start over
  bool recording = false;
  double at_s = 0, length_s = 0;  ///< of a recording
  bool held = false;
  std::uint64_t events_after = 0, decisions_after = 0;  ///< only what was noted later
};

/// Names that rarely change: clusters, engines, states.
std::string fleet_json(const fleet_view::FleetView& view, const Frame& frame, std::string_view fleet);
/// Everything that changes; `sample`: the newest of the history, if it is new.
std::string state_json(const fleet_view::FleetView& view, const fleet_view::Timeline& timeline,
                       const History& history, Instant now, const Frame& frame, const Sample* sample);
/// What came before.
std::string history_json(const fleet_view::FleetView& view, const fleet_view::Timeline& timeline,
                         const History& history);
/// Weights and verdict of one engine.
std::string engine_json(const fleet_view::FleetView& view, const EngineName& engine, Instant now);

}  // namespace signalbox::console
