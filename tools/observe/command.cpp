#include "tools/observe/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/exit.hpp"
#include "tools/observe/explain.hpp"
#include "tools/observe/inspect.hpp"
#include "tools/observe/tap.hpp"

namespace signalbox::observe {

void add_tap(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("tap", "What is said on the bus, live and decoded");
  command.footer(
      "Without filters everything is shown, the latest values first. A filter that is given more than once "
      "takes any.\n"
      "Exit code 3: no forwarder was there.\n\n"
      "Examples:\n"
      "  signalbox tap --message routing_snapshot --message health_verdict\n"
      "  signalbox tap --topic beat/ --json --seconds 2\n"
      "  signalbox tap --engine a100-1 --record signals.sbx\n"
      "  signalbox tap --replay signals.sbx --message engine_signal");
  auto options = std::make_shared<TapOptions>();
  cli::add_fleet_options(command, options->fleet);
  command.add_option("--topic", options->filter.topics, "topics that begin so");
  command.add_option("--message", options->filter.messages, "messages of this type");
  command.add_option("--engine", options->filter.engines, "topics of this engine");
  command.add_option("--cluster", options->filter.clusters, "topics of this cluster");
  command.add_flag("--json", options->json, "one JSON object a line, with the envelope");
  command.add_flag("--drops", options->drops, "tell on stderr what was refused, and why");
  command.add_option("--count", options->most, "end after so many messages");
  command.add_option("--seconds", options->seconds, "end after this time");
  command.add_option("--record", options->record, "write everything heard to a new file as well")
      ->type_name("FILE");
  command.add_option("--replay", options->replay, "show a recorded file instead of the bus")
      ->type_name("FILE");
  command.callback([options] { cli::finish("tap", tap(*options)); });
}

void add_inspect(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("inspect", "The state of the fleet now");
  std::string footer;
  std::vector<std::string> names;
  for (const Subject& subject : subjects()) {
    footer += fmt::format("  {:<10} {}\n", subject.name, subject.sentence);
    names.emplace_back(subject.name);
  }
  command.footer(footer +
                 "\nExit codes: 1 there is none of it, 2 a name is wrong, 3 the bus is not there.\n\n"
                 "Examples:\n"
                 "  signalbox inspect snapshot --cluster west --json\n"
                 "  signalbox inspect weights --engine a100-1");
  auto options = std::make_shared<InspectOptions>();
  command.add_option("WHAT", options->what, "what to show")->required()->check(CLI::IsMember(names));
  cli::add_fleet_options(command, options->fleet);
  command.add_option("--engine", options->engine, "of weights: the engine");
  command.add_option("--cluster", options->cluster, "of snapshot: this cluster only");
  command.add_flag("--json", options->json, "as JSON");
  command.add_option("--wait", options->wait_s, "seconds to listen at most")->capture_default_str();
  command.callback([options] { cli::finish("inspect", inspect(*options)); });
}

void add_explain(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("explain", "Why a request went to its engine and not to the others");
  command.footer(
      "Exit codes: 2 no router keeps that decision, 3 no router answers.\n\n"
      "Example:\n  signalbox explain $(curl -si ... | grep -i x-signalbox-decision | cut -d' ' -f2)");
  auto options = std::make_shared<ExplainOptions>();
  command.add_option("DECISION", options->decision, "the id in the answer's x-signalbox-decision")
      ->required();
  cli::add_fleet_options(command, options->fleet);
  command.add_flag("--json", options->json, "as JSON");
  command.add_option("--wait", options->wait_s, "seconds to wait for each router")->capture_default_str();
  command.callback([options] { cli::finish("explain", explain(*options)); });
}

}  // namespace signalbox::observe
