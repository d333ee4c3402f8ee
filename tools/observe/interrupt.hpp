// SIGINT and SIGTERM as a flag, for commands that run until they are told to end.
#pragma once

#include "messages/base/time.hpp"

namespace signalbox::observe {

/// From now on the signals set the flag, and a closed pipe is an error of the write instead of the process's end.
void catch_interrupts();
bool interrupted();
/// Waits, or until a signal comes.
void pause(Duration longest);

}  // namespace signalbox::observe
