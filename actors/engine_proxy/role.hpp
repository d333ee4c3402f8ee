// The engine-proxy's process: one actor per engine in its care, one fetcher for all.
#pragma once

#include "actors/kit/process.hpp"

namespace signalbox::engine_proxy {

Status start(kit::Process& process);

}  // namespace signalbox::engine_proxy
