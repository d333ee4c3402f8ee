// Reads a scenario from its TOML file, with the topology, the policy and the traces that it names.
#pragma once

#include <string>

#include "messages/base/result.hpp"
#include "tools/simulate/world/scenario.hpp"

namespace signalbox::simulate {

/// Paths in the file are relative to its folder. Errors say "file:line:column: what; hint"; several lines where the
/// topology or the policy has several mistakes.
Result<Scenario> read_scenario(const std::string& file);

}  // namespace signalbox::simulate
