#include "tools/top/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/exit.hpp"
#include "tools/top/top.hpp"

namespace signalbox::top {

void add_top(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("top", "The fleet in a terminal, live");
  command.footer(
      "Keys: Tab view, s sort, r reverse, / filter, Enter look closer, e explain a decision, ? help, q "
      "quit.\n"
      "Exit code 3: no terminal, or no forwarder was there.\n\n"
      "Examples:\n"
      "  signalbox top\n"
      "  signalbox top --sort use --filter west\n"
      "  signalbox top --recording night.sbx --speed 10");
  auto options = std::make_shared<TopOptions>();
  cli::add_source_options(command, options->source);
  command.add_option("--sort", options->sort, "the column to begin with")->check(CLI::IsMember(sort_names()));
  command.add_option("--filter", options->filter, "engines whose name, cluster, model or health holds this");
  command.add_option("--every", options->every_s, "seconds from picture to picture")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 60.0));
  command.add_option("--speed", options->speed, "of --recording: recorded seconds a second")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.callback([options] { cli::finish("top", top(*options)); });
}

}  // namespace signalbox::top
