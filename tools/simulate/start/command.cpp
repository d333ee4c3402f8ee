#include "tools/simulate/start/command.hpp"

#include <CLI/CLI.hpp>

#include "tools/cli/beside.hpp"
#include "tools/cli/exit.hpp"

namespace signalbox::simulate {

// Every word behind the command is the other program's, --help too.
void add_simulate(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("simulate", "Runs a fleet in virtual time and compares control planes");
  command->set_help_flag();
  command->prefix_command();
  command->callback([command] {
    cli::finish("simulate", cli::become("signalbox-simulate", "signalbox simulate", command->remaining()));
  });
}

}  // namespace signalbox::simulate
