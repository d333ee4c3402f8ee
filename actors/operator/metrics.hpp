// What every process tells Prometheus.
#pragma once

#include <string>

#include "actors/kit/process.hpp"
#include "messages/bus/stats.hpp"

namespace signalbox::operators {

/// The text exposition of the process's beat and bus counters.
std::string metrics_of(const kit::Process& process);
/// The same of a forwarder.
std::string metrics_of(const schema::Beat& beat, const bus::ForwarderStats& stats);

}  // namespace signalbox::operators
