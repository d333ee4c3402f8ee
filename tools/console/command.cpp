#include "tools/console/command.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/exit.hpp"
#include "tools/console/console.hpp"

namespace signalbox::console {

void add_console(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("console", "The fleet in a browser, live; it changes nothing");
  command.footer(
      "Whoever reaches the address can look at the fleet: listen on loopback, or behind a proxy that asks "
      "who it is.\n"
      "Exit code 3: this build has no page (tools/setup console, then build again).\n\n"
      "Examples:\n"
      "  signalbox console\n"
      "  signalbox console --listen 127.0.0.1:0\n"
      "  signalbox console --recording night.sbx --speed 5");
  auto options = std::make_shared<ConsoleOptions>();
  cli::add_source_options(command, options->source);
  command.add_option("--listen", options->listen, "host:port; port 0 takes a free one, printed on stdout")
      ->capture_default_str();
  command.add_option("--speed", options->speed, "of --recording: recorded seconds a second")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--every", options->every_s, "seconds from state to state")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 60.0));
  command.callback([options] { cli::finish("console", console(*options)); });
}

}  // namespace signalbox::console
