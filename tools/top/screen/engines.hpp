// The list of engines: which are shown, in which order, and a line for each.
#pragma once

#include <optional>
#include <vector>

#include "tools/top/screen/screen.hpp"

namespace signalbox::top {

/// The engines that the filter lets through, in the order that was chosen.
std::vector<fleet_view::EngineStatus> chosen_engines(const fleet_view::FleetView& view, const Ui& ui,
                                                     Instant now);

Line engine_head(const Ui& ui, std::size_t columns);
Line engine_line(const fleet_view::EngineStatus& engine, std::size_t columns);
/// A line above the engines of a cluster, with their sums.
Line cluster_line(const std::vector<fleet_view::EngineStatus>& engines, std::size_t first,
                  std::size_t columns);

/// Text in a field of this width, cut or filled up.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);
/// "12.3ms", "1.2s"; "-" for what is not known.
std::string time_text(const std::optional<double>& seconds);
/// "42%"; "-" for what is not known.
std::string share_text(const std::optional<double>& share);
Look look_of(HealthState state);

}  // namespace signalbox::top
