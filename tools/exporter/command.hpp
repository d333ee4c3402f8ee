// `signalbox exporter`: the fleet's state for Prometheus, from the bus.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::exporter {

void add_exporter(CLI::App& app);

}  // namespace signalbox::exporter
