// `signalbox keys`: the keys of a fleet's processes.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::keys {

void add_keys(CLI::App& app);

}  // namespace signalbox::keys
