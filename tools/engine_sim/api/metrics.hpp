// The engine's counters as Prometheus text under vLLM's names.
#pragma once

#include <string>
#include <string_view>

#include "tools/engine_sim/machine/engine.hpp"

namespace signalbox::engine_sim {

/// `started_s`: wall time of the start, seconds since 1970.
std::string metrics_text(const Engine& engine, std::string_view model, double started_s);

}  // namespace signalbox::engine_sim
