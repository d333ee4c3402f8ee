// `signalbox up`, `down`, `status` and `restart`.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::launcher {

void add_up(CLI::App& app);
void add_down(CLI::App& app);
void add_status(CLI::App& app);
void add_restart(CLI::App& app);

}  // namespace signalbox::launcher
