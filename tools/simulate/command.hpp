// The command line of `signalbox-simulate`.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::simulate {

/// Gives `command` its options and what it does.
void set_up_simulate(CLI::App& command);

}  // namespace signalbox::simulate
