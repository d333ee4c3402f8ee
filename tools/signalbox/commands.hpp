// The commands of the one binary: each is a room that adds itself, and a line in commands.cpp.
#pragma once

namespace CLI {
class App;
}

namespace signalbox {

void add_commands(CLI::App& app);

}  // namespace signalbox
