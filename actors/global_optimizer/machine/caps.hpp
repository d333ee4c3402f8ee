// Holds one row's weights within the policy's caps per engine, rack and cluster: spread by construction and repair.
#pragma once

#include <vector>

#include "actors/kit/fleet/table.hpp"

namespace signalbox::global_optimizer {

/// One engine's place in a row. `room`: how much of what others must give up it may take, relative to the others; 0 for
/// engines that get nothing new.
struct Share {
  EngineIndex engine;
  double weight = 0;
  double room = 0;
};

/// Moves weight from what is over a cap to what has room under all of its caps. Where the caps leave too little room for
/// the whole row, the rest is spread by room alone: verification will say so. Weights sum to what they summed to.
void hold_caps(std::vector<Share>& row, const schema::FleetTable& table, const policy::Limits& limits);

}  // namespace signalbox::global_optimizer
