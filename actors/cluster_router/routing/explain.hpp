// Decisions in words: every engine with its fate. Allowed to allocate and to be linear in the fleet.
#pragma once

#include <vector>

#include "actors/cluster_router/routing/decide.hpp"
#include "actors/cluster_router/routing/record.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

/// Decides again from the same inputs, and lists every engine of the fleet: the candidates first, the chosen one before
/// all, then the others by row, with what they would have cost.
std::vector<schema::CandidateRow> explain(const Surroundings& around, const Ask& ask, const Tried& tried,
                                          Instant now, std::uint64_t seed);

/// The same for a decision of the past: the candidates as recorded, the others by the plan of that time, without costs.
std::vector<schema::CandidateRow> explain_recorded(const RecordCore& core, const RecordDetail& detail,
                                                   const PlanContext* plan);

}  // namespace signalbox::routing
