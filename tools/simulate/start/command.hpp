// `signalbox simulate`: hands over to signalbox-simulate, which links the solver.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::simulate {

void add_simulate(CLI::App& app);

}  // namespace signalbox::simulate
