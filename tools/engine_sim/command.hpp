// `signalbox engine-sim`.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::engine_sim {

/// Adds the command; when chosen it serves until SIGINT or SIGTERM. A start that fails ends it by cli::finish().
void add_engine_sim(CLI::App& app);

}  // namespace signalbox::engine_sim
