// What must hold between the parts of a configuration.
#pragma once

#include "cluster-config/schema/topology.hpp"

namespace signalbox::config {

/// References, uniqueness, laminar domains, who serves whom, addresses, security.
void check_config(const Config& config, std::vector<Mistake>& mistakes);

}  // namespace signalbox::config
