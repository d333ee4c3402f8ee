// A fleet and what befalls its control plane, drawn from a seed: faults for half a minute, then all of them end.
#pragma once

#include <string>

#include "tools/simulate/world/scenario.hpp"

namespace signalbox::simulate::control {

/// Nothing fails before; the fleet must be at work by then.
inline constexpr Duration faults_from = 8s;
/// Everything is whole again.
inline constexpr Duration healed_at = 38s;
/// From here on the fleet must be as if nothing had been.
inline constexpr Duration settled_at = 52s;
inline constexpr Duration ends_at = 60s;

Scenario control_scenario(std::uint64_t seed);
/// What happens when, a line each.
std::string story_of(const Scenario& scenario);

}  // namespace signalbox::simulate::control
