// What a running `signalbox up` leaves in its state folder for the other commands: which processes are its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"

namespace signalbox::cli {

/// A process that cannot be mistaken for a later one with the same number.
struct ProcessRef {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< the kernel's start time, in ticks since boot
};

/// The process with this number as it is now; nothing if there is none, or it has ended and waits for its parent.
std::optional<ProcessRef> process_now(pid_t pid);
bool is_running(const ProcessRef& process);
/// Waits until it has ended; false if it still runs after `longest`.
bool wait_until_gone(const ProcessRef& process, Duration longest);

/// The path of the running binary.
std::string own_program();

struct LauncherState {
  std::string fleet;
  ProcessRef launcher;
  std::uint16_t port_base = 0;
  std::string config;
  struct Entry {
    std::string name;
    ProcessRef process;
  };
  std::vector<Entry> processes;
};

/// Errors: not_found when no launcher ran there or it ended in order, invalid when the file is damaged.
Result<LauncherState> read_state(const std::string& state_dir);
Status write_state(const std::string& state_dir, const LauncherState& state);
void remove_state(const std::string& state_dir);

}  // namespace signalbox::cli
