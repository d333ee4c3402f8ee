// The global-optimizer's process: the actor, and a thread that tends the solver's child process.
#pragma once

#include "actors/kit/process.hpp"

namespace signalbox::global_optimizer {

Status start(kit::Process& process);

}  // namespace signalbox::global_optimizer
