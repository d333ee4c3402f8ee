// `signalbox run ROLE`: the whole life of one process.
#pragma once

#include <string>
#include <string_view>

#include "cluster-config/schema/topology.hpp"
#include "messages/base/ids.hpp"

namespace signalbox::actors {

/// What the command line knows and the config does not.
struct RunOptions {
  std::string config_file;      ///< read again on SIGHUP
  config::Overrides overrides;  ///< applied again then
  std::string program;          ///< path of this binary; signalbox-solver is looked for beside it
  std::string log_level = "info";
};

/// Runs one process of the fleet until SIGTERM or SIGINT, which drain it; SIGHUP reloads. Writes its log to stderr.
/// Returns the exit code: 0 stopped in order, 1 failed, 2 the role, id or config is wrong. Call it once per process,
/// before other threads exist.
int run_role(std::string_view role, const config::Config& config, const ProcessName& id,
             const RunOptions& options);

/// The roles that run_role knows, one "name: sentence" line each.
std::string role_list();

}  // namespace signalbox::actors
