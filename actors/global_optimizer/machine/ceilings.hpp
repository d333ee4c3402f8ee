// What plans that were altered by hand put on the engines, and what must be refused so that they can carry it.
#pragma once

#include <vector>

#include "actors/global_optimizer/machine/caps.hpp"
#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// What the policy lets a plan ask of an engine, in s/s.
double load_ceiling(const Facts& facts, EngineIndex e);
/// Work of one request there as far as a snapshot's row says, in s: what the verifier counts, which does not know the cached part of the
/// context.
double work_of(const Facts& facts, const schema::AdmitRow& row, EngineIndex e);

/// Sets Share::fair: by how many requests of this kind the engines can serve, which are none for those out of service.
void share_fairly(std::vector<Share>& row, const Facts& facts, const schema::AdmitRow& kind);

/// Engine time asked of each engine by all clusters, by EngineIndex, in s/s.
std::vector<double> loads_of(const std::vector<schema::RoutingSnapshot>& plan, const Facts& facts);

/// Lowers admit fractions until no engine is asked for more than it may carry: in the policy's order, down to the floors, and alike for all
/// classes and clusters that share engines, directly or through others, so that none of them is refused before a lesser one. Where the
/// floors alone are too much, too much stays: verification will say so.
void refuse_what_is_too_much(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts);

}  // namespace signalbox::global_optimizer
