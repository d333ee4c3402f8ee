// `signalbox tap`, `inspect` and `explain`: they listen and change nothing.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::observe {

void add_tap(CLI::App& app);
void add_inspect(CLI::App& app);
void add_explain(CLI::App& app);

}  // namespace signalbox::observe
