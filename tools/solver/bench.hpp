// `signalbox-solver --bench`: CPU time, gap and memory of solves of invented fleets, as JSON.
#pragma once

#include <string>
#include <vector>

namespace signalbox::optimizer {

struct BenchOptions {
  std::vector<std::string> sizes;  ///< "clusters x engines x models", like 50x2000x20
  std::vector<double> utilisations{0.7, 0.9};
  bool ties = false;
  double target_gap = 1e-3;
  unsigned repetitions = 5;  ///< warm solves per instance
};

/// One JSON object per line on standard output. Returns the exit code.
int run_bench(const BenchOptions& options);

}  // namespace signalbox::optimizer
