// The feedback-balancer's process: one machine, fed by the bus alone.
#pragma once

#include "actors/kit/process.hpp"

namespace signalbox::feedback_balancer {

Status start(kit::Process& process);

}  // namespace signalbox::feedback_balancer
