// signalbox-solver: solves routing problems in a process of its own. The optimizer starts it and talks to it
// by pipes.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>

#include "tools/solver/bench.hpp"
#include "tools/solver/serve.hpp"

namespace {

using namespace signalbox::optimizer;

InjectedFault fault_from_environment() {
  const char* name = std::getenv("SIGNALBOX_SOLVER_FAULT");
  if (name == nullptr) return InjectedFault::none;
  const std::string_view fault(name);
  return fault == "crash"  ? InjectedFault::crash
         : fault == "hang" ? InjectedFault::hang
         : fault == "nan"  ? InjectedFault::nan
                           : InjectedFault::none;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return serve(fault_from_environment());
  CLI::App app("Without a command: serves the optimizer, which writes solve requests to standard input.",
               "signalbox-solver");
  app.require_subcommand(1);
  add_bench(app);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
