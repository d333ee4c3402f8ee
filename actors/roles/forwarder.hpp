// The forwarder's process. It is no actor: the bus has its own loop.
#pragma once

#include "actors/roles/run.hpp"

namespace signalbox::actors {

int run_forwarder(const config::Config& config, const ProcessName& id, const RunOptions& options);

}  // namespace signalbox::actors
