// `signalbox apikey`: writes the file of API keys that routers read.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::api_keys {

void add_api_keys(CLI::App& app);

}  // namespace signalbox::api_keys
