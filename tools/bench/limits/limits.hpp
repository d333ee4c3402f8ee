// What the policy's limits on rows cost a large plan: the optimizer's own code, on an invented fleet.
#pragma once

#include <string>

#include "messages/base/result.hpp"

namespace signalbox::bench {

/// The invented fleet: clusters x engines x models at that utilisation. `solver`: the program that makes the plan.
struct LimitsLoad {
  std::uint32_t clusters = 50, engines = 2000, models = 20;
  double utilisation = 0.7;
  unsigned repeat = 5;
  std::string solver;
};

/// Solves once, then makes and verifies the rows under one limit after the other. One JSON object a line on stdout.
Status bench_limits(const LimitsLoad& load);

}  // namespace signalbox::bench
