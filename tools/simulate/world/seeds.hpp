// One scenario with several seeds: what is the fleet's answer, and what is chance?
#pragma once

#include <span>

#include "tools/simulate/world/report.hpp"

namespace signalbox::simulate {

/// How single runs differ from their mean.
struct Worst {
  double beyond = 0;
  std::uint32_t reversals = 0;
  std::optional<Duration> settled_after;  ///< nothing: one never does
};

/// How the weights answered one happening in all runs.
struct SeedsAnswer {
  PhaseAnswer mean;               ///< of the trajectories that are the mean of all runs: chance cancels
  std::vector<Worst> engines;     ///< by engine, over the runs
  std::vector<double> overshoot;  ///< of all weights together, by run; 0 where they hardly moved
};

/// By phase but the first. Precondition: at least one report, all of the same scenario.
std::vector<SeedsAnswer> answers_of(std::span<const Report> reports);

}  // namespace signalbox::simulate
