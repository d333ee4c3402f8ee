// Which processes a configuration means, in the order in which they are started.
#pragma once

#include <string>
#include <vector>

#include "cluster-config/schema/topology.hpp"
#include "messages/base/described.hpp"

namespace signalbox::launcher {

/// Started from the first to the last, stopped from the last to the first.
enum class Stage : std::uint8_t { bus, engines, policy, observers, optimizers, routers };

struct PlannedProcess {
  std::string name;
  std::string role;  ///< as `signalbox run` knows it, or "engine-sim"
  Stage stage = Stage::routers;
  std::vector<std::string> arguments;  ///< of the signalbox binary
  std::string serves;                  ///< host:port or endpoint; may be empty
  bool beats = true;                   ///< says on the bus how it is
};

/// What every process is told beside its own id: the same configuration and the same overrides.
std::vector<std::string> common_arguments(const config::Config& config, const std::string& file);

/// In the order of stages, then of the configuration. `file` is the configuration's absolute path.
std::vector<PlannedProcess> plan_processes(const config::Config& config, const std::string& file);

}  // namespace signalbox::launcher
