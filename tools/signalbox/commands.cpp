#include "tools/signalbox/commands.hpp"

#include "tools/engine_sim/command.hpp"

namespace signalbox {

void add_commands(CLI::App& app) { engine_sim::add_engine_sim(app); }

}  // namespace signalbox
