// `signalbox policy`: work on policy files.
#pragma once

namespace CLI {
class App;
}

namespace signalbox::policy_command {

void add_policy(CLI::App& app);

}  // namespace signalbox::policy_command
