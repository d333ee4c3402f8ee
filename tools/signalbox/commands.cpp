#include "tools/signalbox/commands.hpp"

namespace signalbox {

void add_commands(CLI::App&) {}

}  // namespace signalbox
