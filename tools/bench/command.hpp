// `signalbox bench`: what the decision costs, and the two ends of tools/bench/compare.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::bench {

void add_bench(CLI::App& app);

}  // namespace signalbox::bench
