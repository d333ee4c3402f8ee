// `signalbox top`: the fleet in a terminal, live.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::top {

void add_top(CLI::App& app);

}  // namespace signalbox::top
