// `signalbox drain` and `signalbox order`: signed orders to the fleet.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::order {

void add_drain(CLI::App& app);
void add_order(CLI::App& app);

}  // namespace signalbox::order
