// From nearly feasible flows to a plan that keeps every ceiling exactly.
#pragma once

#include <vector>

#include "optimizer/model/problem.hpp"
#include "optimizer/solve/columns.hpp"

namespace signalbox::optimizer {

/// Flows on working columns that are to become a plan.
struct Flows {
  std::vector<double> flow_per_s;  ///< by working column
  std::vector<double> shed_per_s;  ///< by source
  std::vector<double> load;        ///< by engine
};

/// Trims every engine to its ceiling, cheapest refusals first; then serves what was refused where there is
/// room, dearest refusals first; then lets a source whose refusal is dearer take the place of a cheaper one
/// on a full engine. Who lost its place may be dearer to refuse than others elsewhere: places change hands in at most `rounds` rounds.
void repair(const Problem& problem, const Columns& columns, Flows& flows, int rounds = 1);

/// The objective of repaired flows.
double objective_of(const Problem& problem, const Columns& columns, const Flows& flows);

}  // namespace signalbox::optimizer
