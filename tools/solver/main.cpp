// signalbox-solver: solves routing problems in a process of its own. The optimizer starts it and talks to it
// by pipes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tools/solver/bench.hpp"
#include "tools/solver/serve.hpp"

namespace {

using namespace signalbox::optimizer;

constexpr const char* usage =
    "usage: signalbox-solver                                    serve the optimizer: solve requests on "
    "standard input\n"
    "       signalbox-solver --bench [--ties] [--utilisation U]... SIZE...\n"
    "                                                           time solves of invented fleets; one JSON "
    "object a line\n"
    "  SIZE is clusters x engines x models, like 50x2000x20\n";

InjectedFault fault_from_environment() {
  const char* name = std::getenv("SIGNALBOX_SOLVER_FAULT");
  if (name == nullptr) return InjectedFault::none;
  const std::string_view fault(name);
  return fault == "crash"  ? InjectedFault::crash
         : fault == "hang" ? InjectedFault::hang
         : fault == "nan"  ? InjectedFault::nan
                           : InjectedFault::none;
}

int bench(int argc, char** argv) {
  BenchOptions options;
  std::vector<double> utilisations;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--ties") == 0)
      options.ties = true;
    else if (std::strcmp(argv[i], "--utilisation") == 0 && i + 1 < argc)
      utilisations.push_back(std::atof(argv[++i]));
    else if (argv[i][0] == '-')
      return std::fputs(usage, stderr), 2;
    else
      options.sizes.emplace_back(argv[i]);
  }
  if (!utilisations.empty()) options.utilisations = utilisations;
  if (options.sizes.empty()) options.sizes = {"5x50x3", "20x500x10", "50x2000x20"};
  return run_bench(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return serve(fault_from_environment());
  if (std::strcmp(argv[1], "--bench") == 0) return bench(argc, argv);
  const bool asked = std::strcmp(argv[1], "--help") == 0;
  std::fputs(usage, asked ? stdout : stderr);
  return asked ? 0 : 2;
}
