// How commands end: exit codes that scripts can use, and one way to report an error.
#pragma once

#include <string_view>

#include "messages/base/result.hpp"

namespace signalbox::cli {

enum Exit : int {
  exit_ok = 0,
  exit_failed = 1,       ///< it was tried and did not work, or a check found something
  exit_usage = 2,        ///< the command line, the configuration or a name is wrong
  exit_unreachable = 3,  ///< the fleet, a process or the bus is not there
};

/// The exit code that an error means.
Exit exit_of(const Error& error);

/// Ends a CLI11 callback with this code; returns normally for exit_ok.
void finish(Exit code);
/// The same after a Status: an error is written to stderr as "signalbox COMMAND: text" first; an empty
/// command is left out.
void finish(std::string_view command, const Status& status);

}  // namespace signalbox::cli
