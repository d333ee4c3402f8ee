// The fleet as Prometheus metrics: what no single process knows of it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tools/fleet_view/view.hpp"

namespace signalbox::fleet_view {

struct FleetMetric {
  std::string_view name;
  std::string_view labels;  ///< their names, separated by commas
  std::string_view help;
};

/// Every metric that fleet_metrics() can write, in its order; all are gauges.
std::string fleet_metrics(const FleetView& view, Instant now);
/// Their declarations, for docs and checks.
extern const std::array<FleetMetric, 32> fleet_metric_list;

}  // namespace signalbox::fleet_view
