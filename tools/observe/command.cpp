#include "tools/observe/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/exit.hpp"
#include "tools/observe/explain.hpp"
#include "tools/observe/inspect.hpp"
#include "tools/observe/tap.hpp"

namespace signalbox::observe {

namespace {

void add_filter_options(CLI::App& command, Filter& filter) {
  const char* const group = "Filters (given more than once: any)";
  command.add_option("--topic", filter.topics, "topics that begin so")->group(group);
  command.add_option("--message", filter.messages, "messages of this type")->group(group);
  command.add_option("--cluster", filter.clusters, "of or about this cluster")->group(group);
  command.add_option("--engine", filter.engines, "of or about this engine")->group(group);
  command.add_option("--class", filter.classes, "that name this class, themselves or in a row")->group(group);
  command.add_option("--decision", filter.decisions, "about this decision")->group(group);
  command.add_option("--where", filter.where, "a condition on fields; docs/operations.md")
      ->type_name("EXPR")
      ->group(group);
}

}  // namespace

void add_tap(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("tap", "What is said on the bus, live and decoded");
  command.footer(
      "Without filters everything is shown, the latest values first. What was lost on the way, or came "
      "faster than it "
      "could\nbe shown, is counted on stderr at the end.\n"
      "Exit code 3: no forwarder was there.\n\n"
      "Examples:\n"
      "  signalbox tap --message routing_snapshot --message health_verdict\n"
      "  signalbox tap --message engine_signal --where 'waiting > 4 or scrape != ok'\n"
      "  signalbox tap --cluster west --diff                    what each plan changes\n"
      "  signalbox tap --stats --seconds 10                     who says how much\n"
      "  signalbox tap --quiet --record night.sbx               record until Ctrl-C\n"
      "  signalbox tap --replay night.sbx --engine a100-1       read it\n"
      "  signalbox tap --replay night.sbx --speed 2 --bus /tmp/night\n"
      "  signalbox inspect engines --bus /tmp/night             look at the replay as at a fleet");
  auto options = std::make_shared<TapOptions>();
  cli::add_source_options(command, options->source);
  add_filter_options(command, options->filter);
  command.add_flag("--json", options->json, "one JSON object a line, with the envelope");
  command.add_flag("--full", options->full, "every field of each message, with its unit and sentence");
  command.add_flag("--quiet", options->quiet, "show no messages");
  command.add_flag("--stats", options->stats, "instead of the messages: rates, losses and ages by sender");
  command.add_option("--every", options->every_s, "of --stats: also each so many seconds")
      ->type_name("SECONDS");
  command.add_flag("--diff", options->diff, "of snapshots: what changed since the one before");
  command
      .add_option("--between", options->between, "of snapshots: what is different between these two versions")
      ->expected(2)
      ->type_name("VERSION");
  command
      .add_option("--follow", options->follow,
                  "the journey of one request, by its decision; 'next': of the next that passes")
      ->type_name("DECISION");
  command.add_flag("--drops", options->drops, "tell on stderr what was refused, and why");
  command.add_option("--count", options->most, "end after so many messages");
  command.add_option("--seconds", options->seconds, "end after this time");
  command.add_option("--record", options->record, "write what passes the filters to a new file as well")
      ->type_name("FILE");
  auto* replay =
      command.add_option("--replay", options->replay, "show a recorded file; with --bus DIR, play it there")
          ->type_name("FILE");
  command.add_option("--speed", options->speed, "of --replay: recorded seconds a second; 0: at once")
      ->type_name("FACTOR")
      ->check(CLI::NonNegativeNumber)
      ->needs(replay);
  command.callback([options] {
    if (options->replay.empty()) options->replay = options->source.recording;
    cli::finish("tap", tap(*options));
  });
}

void add_inspect(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("inspect", "The state of the fleet now");
  std::string footer;
  std::vector<std::string> names;
  for (const Subject& subject : subjects()) {
    footer += fmt::format("  {:<10} {}\n", subject.name, subject.sentence);
    names.emplace_back(subject.name);
  }
  command.footer(
      footer +
      "\nOn a terminal the tables fit its width: columns that matter less go first, and a line says which.\n"
      "Exit codes: 1 there is none of it, 2 a name is wrong, 3 the bus is not there.\n\n"
      "Examples:\n"
      "  signalbox inspect snapshot --cluster west --json\n"
      "  signalbox inspect weights --engine a100-1\n"
      "  signalbox inspect engines --sort -use --filter verdict!=ready\n"
      "  signalbox inspect demand --watch 2\n"
      "  signalbox inspect health --recording night.sbx --at 120");
  auto options = std::make_shared<InspectOptions>();
  command.add_option("WHAT", options->what, "what to show")->required()->check(CLI::IsMember(names));
  cli::add_source_options(command, options->source);
  command.add_option("--engine", options->engine, "of weights: the engine");
  command.add_option("--cluster", options->cluster, "of snapshot: this cluster only");
  command.add_option("--sort", options->sort, "by this column; -COLUMN: the largest first")
      ->type_name("COLUMN");
  command
      .add_option("--filter", options->filter,
                  "rows that hold TEXT; COLUMN=TEXT or COLUMN!=TEXT: in that column, whole")
      ->type_name("TEXT");
  command.add_option("--watch", options->watch_s, "show it again each so many seconds (1), until Ctrl-C")
      ->expected(0, 1)
      ->default_str("1")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0));
  command.add_option("--width", options->width,
                     "columns of text instead of the terminal's; 0: as many as it takes");
  command.add_flag("--json", options->json, "one JSON object");
  command.add_option("--wait", options->wait_s, "longest time to listen, in seconds")->capture_default_str();
  command.callback([options] { cli::finish("inspect", inspect(*options)); });
}

void add_explain(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("explain", "Why a request went to its engine and not to the others");
  command.footer(
      "--what-if answers for a change: engine=E (that one had served it), slow=2x or slow=E:2x (the chosen "
      "one, or E, "
      "were twice\nas slow), without=E. Where the decision's inputs were recorded it is made again with the "
      "same draws; "
      "else the recorded\ncandidates are compared again.\n"
      "Of decisions that a router no longer has in its memory, for instance of before its restart, it has "
      "the short "
      "record\nin decisions.ring in its state folder; --ring reads that file, or a copy, and asks nobody.\n"
      "Exit codes: 2 nobody keeps that decision, 3 no router answers.\n\n"
      "Examples:\n"
      "  signalbox explain $(curl -si ... | grep -i x-signalbox-decision | cut -d' ' -f2)\n"
      "  signalbox explain DECISION --what-if without=w1 --what-if slow=e1:2x\n"
      "  signalbox explain DECISION --recording night.sbx\n"
      "  signalbox explain DECISION --ring decisions.ring");
  auto options = std::make_shared<ExplainOptions>();
  command.add_option("DECISION", options->decision, "the id in the answer's x-signalbox-decision")
      ->required();
  cli::add_source_options(command, options->source);
  command.add_option("--ring", options->ring, "a router's decisions.ring")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command.add_option("--what-if", options->what_if, "a change; several are made together")
      ->type_name("CHANGE")
      ->allow_extra_args(false);
  command.add_flag("--json", options->json, "as JSON");
  command.add_option("--wait", options->wait_s, "seconds to wait for each router")->capture_default_str();
  command.callback([options] { cli::finish("explain", explain(*options)); });
}

}  // namespace signalbox::observe
