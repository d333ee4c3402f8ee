// `signalbox run ROLE`: one process of a fleet.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::run {

void add_run(CLI::App& app);

}  // namespace signalbox::run
