// `signalbox-solver bench`: CPU time, gap and memory of solves of invented fleets, as JSON.
#pragma once

#include <CLI/CLI.hpp>

namespace signalbox::optimizer {

void add_bench(CLI::App& app);

}  // namespace signalbox::optimizer
