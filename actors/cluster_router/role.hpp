// The cluster-router's process: the gateway's event loop, and the actor that feeds it views and reports what it hands out.
#pragma once

#include "actors/kit/process.hpp"

namespace signalbox::cluster_router {

Status start(kit::Process& process);

}  // namespace signalbox::cluster_router
