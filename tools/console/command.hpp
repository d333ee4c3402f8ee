// `signalbox console`: the fleet in a browser. It reads, and changes nothing.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::console {

void add_console(CLI::App& app);

}  // namespace signalbox::console
