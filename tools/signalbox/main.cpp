// The one binary. What it can do is in commands.cpp.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "tools/cli/exit.hpp"
#include "tools/signalbox/commands.hpp"

namespace {

constexpr const char* footer =
    "Examples:\n"
    "  signalbox up cluster-config/examples/laptop.toml     start a fleet on this machine; Ctrl-C stops it\n"
    "  signalbox tap --config FILE --topic snapshot/        what is said on its bus\n"
    "  signalbox COMMAND --help                             more on one command\n"
    "\n"
    "Exit codes: 0 done; 1 failed, or a check found something; 2 the command line, a file or a name is "
    "wrong;\n"
    "3 the fleet, a process or the bus is not there.";

int run(int argc, char** argv) {
  CLI::App app("Signalbox routes requests to inference engines.", "signalbox");
  app.footer(footer);
  app.set_version_flag("--version", "signalbox " SIGNALBOX_VERSION);
  app.require_subcommand(1);
  signalbox::add_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& end) {
    return end.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? signalbox::cli::exit_ok : signalbox::cli::exit_usage;
  }
  return signalbox::cli::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "signalbox: {}\n", error.what());
    return signalbox::cli::exit_failed;
  }
}
