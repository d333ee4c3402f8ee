// The one binary. What it can do is in commands.cpp.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "messages/base/nearest.hpp"
#include "tools/cli/exit.hpp"
#include "tools/cli/terminal.hpp"
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

/// A misspelt command, for which CLI11 would only say that one is required.
void check_command(const CLI::App& app, std::string_view word) {
  if (word.empty() || word.front() == '-') return;
  std::vector<std::string_view> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  signalbox::cli::finish(
      "", signalbox::fail(signalbox::ErrorKind::not_found, fmt::format("there is no command '{}'", word), {},
                          signalbox::name_hint(word, names)));
}

int run(int argc, char** argv) {
  CLI::App app("Signalbox routes requests to inference engines.", "signalbox");
  app.footer(footer);
  app.set_version_flag("--version", "signalbox " SIGNALBOX_VERSION);
  app.require_subcommand(1);
  signalbox::add_commands(app);
  try {
    if (argc > 1) check_command(app, argv[1]);
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
    signalbox::cli::put(stderr, fmt::format("signalbox: {}\n", error.what()));
    return signalbox::cli::exit_failed;
  }
}
