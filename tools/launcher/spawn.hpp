// Child processes that cannot outlive their launcher.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "messages/base/result.hpp"

namespace signalbox::launcher {

/// Starts `program` with these arguments in a process group of its own, output appended to `log_path`. The kernel kills
/// it when the calling thread ends, however that comes about. Errors: io.
Result<pid_t> spawn(const std::string& program, const std::vector<std::string>& arguments,
                    const std::string& log_path);

/// Signals a child's whole group, so that what it started itself ends too.
void signal_group(pid_t leader, int signal);

/// The last line that a process has written into its log since that was `from` bytes long; a long one is cut.
std::string last_words(const std::string& log_path, std::uintmax_t from);

/// "exit code 1", "killed by signal 9 (Killed)": a wait status in words.
std::string describe_end(int wait_status);

}  // namespace signalbox::launcher
