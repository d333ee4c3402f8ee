// What every process tells Prometheus.
#pragma once

#include <string>

#include "actors/kit/process.hpp"

namespace signalbox::operators {

/// The text exposition of the process's beat and bus counters.
std::string metrics_of(const kit::Process& process);

}  // namespace signalbox::operators
