// Which weights stay in force when a new plan is at hand. Near the optimum the objective is flat, and what demand and
// slowness are known from is noisy: a plan that is followed for every small gain moves without end. So a source's row is
// replaced only where keeping it costs something.
//
// With the prices m of the fresh plan's loads y, keeping flows x' with loads y' costs exactly
//     sum_s sum_i (cost_i + work_i m_e) (x'_i - x_i)  +  sum_e G_e(y'_e) - G_e(y_e) - m_e (y'_e - y_e)
// above the fresh plan: one term per source, one per engine, none of them negative at an optimum. Each is compared with the
// latency that accrues there, so that one engine's trouble counts the same in a fleet of six and in one of thousands.
#pragma once

#include <vector>

#include "optimizer/model/plan.hpp"

namespace signalbox::optimizer {

struct KeptPlan {
  Plan plan;               ///< its certificate holds: the flows are these, the bound is the fresh plan's
  std::vector<bool> kept;  ///< by SourceIndex: its shares are those in force
  bool stands = false;     ///< there is demand, and all its shares are those in force
};

/// `fresh`, but with the shares of Problem::reference_per_s for every source where keeping them costs less than
/// `tolerance` times the latency there, and overloads nothing. What is shed is as in `fresh`. Sources without a whole
/// reference (new, or with flow on an engine that may serve it no more) are as in `fresh`. `tolerance` 0 keeps nothing.
KeptPlan keep_in_force(const Problem& problem, const Plan& fresh, double tolerance);

}  // namespace signalbox::optimizer
