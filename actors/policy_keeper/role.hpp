// The policy-keeper's process: reads the policy file at the start, on SIGHUP and when ordered.
#pragma once

#include "actors/kit/process.hpp"

namespace signalbox::policy_keeper {

Status start(kit::Process& process);

}  // namespace signalbox::policy_keeper
