#include <CLI/CLI.hpp>

#include "tools/signalbox/commands.hpp"

int main(int argc, char** argv) {
  CLI::App app("Signalbox: routes requests to inference engines");
  app.require_subcommand(1);
  signalbox::add_commands(app);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
