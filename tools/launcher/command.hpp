// `signalbox up`, `down`, `status`, `restart` and `stop`.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::launcher {

void add_up(CLI::App& app);
void add_down(CLI::App& app);
void add_status(CLI::App& app);
void add_restart(CLI::App& app);
void add_stop(CLI::App& app);

}  // namespace signalbox::launcher
