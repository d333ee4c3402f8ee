#include "tools/simulate/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>

#include "messages/base/enum_names.hpp"
#include "messages/base/words.hpp"
#include "tools/cli/exit.hpp"
#include "tools/simulate/plot.hpp"
#include "tools/simulate/render.hpp"
#include "tools/simulate/scenario_file.hpp"
#include "tools/simulate/world/world.hpp"

namespace signalbox::simulate {
namespace {

struct Arguments {
  std::string scenario;
  std::string json, csv, svg;
  std::optional<std::uint64_t> seed;
  std::uint64_t seeds = 1;
  std::string control, rule;
  std::size_t routers = 0;
  double pace = 1;
  bool compare = false;
};

Status write(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  if (path == "-") return fmt::print("{}\n", text), Status{};
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  if (!out) return fail(ErrorKind::io, "cannot write it", path);
  return {};
}

std::vector<Report> run_seeds(Scenario scenario, std::uint64_t seeds) {
  std::vector<Report> reports;
  for (std::uint64_t s = 0; s < seeds; ++s, ++scenario.seed) {
    World world(scenario);
    reports.push_back(world.run());
  }
  return reports;
}

/// One control plane's runs.
struct Runs {
  config::ControlKind control;
  std::vector<Report> reports;
};

std::string title_of(const Runs& runs) {
  return fmt::format(
      "{}: {}", runs.reports.front().scenario,
      runs.control == config::ControlKind::optimizer ? "global-optimizer" : "feedback-balancer");
}

Status show(const Arguments& arguments, const std::vector<Runs>& all) {
  const bool to_stdout = arguments.json == "-" || arguments.csv == "-" || arguments.svg == "-";
  std::vector<Panel> panels;
  for (const Runs& runs : all) {
    if (!to_stdout)
      fmt::print("{}{}\n\n{}", panels.empty() ? "" : "\n", title_of(runs),
                 runs.reports.size() > 1 ? as_text(runs.reports) : as_text(runs.reports.front()));
    panels.push_back({title_of(runs), &runs.reports.front()});
  }
  const Report& first = all.front().reports.front();
  if (const Status written = write(arguments.json, as_json(first)); !written) return written;
  if (const Status written = write(arguments.csv, as_csv(first)); !written) return written;
  return arguments.svg.empty() ? Status{} : write(arguments.svg, as_svg(panels));
}

Status simulate(const Arguments& arguments) {
  auto scenario = read_scenario(arguments.scenario);
  if (!scenario) return tl::unexpected(scenario.error());
  if (arguments.seed) scenario->seed = *arguments.seed;
  scenario->rule = value_of<RoutingRule>(arguments.rule).value_or(scenario->rule);
  if (arguments.routers > 0) use_routers(*scenario, arguments.routers);
  use_pace(*scenario, arguments.pace);
  const auto own = value_of<config::ControlKind>(arguments.control).value_or(scenario->config.control.kind);
  std::vector<config::ControlKind> controls{own};
  if (arguments.compare) controls = {config::ControlKind::optimizer, config::ControlKind::feedback};
  std::vector<Runs> all;
  for (const config::ControlKind control : controls) {
    use_control(*scenario, control);
    all.push_back({control, run_seeds(*scenario, arguments.seeds)});
  }
  return show(arguments, all);
}

}  // namespace

void set_up_simulate(CLI::App& command) {
  auto arguments = std::make_shared<Arguments>();
  command.description("Runs a fleet in virtual time: its own machines, simulated engines");
  command.footer(
      "The same scenario with the same seed gives the same report. docs/simulate.md tells what is in a "
      "scenario\n"
      "and what the words of a report mean.\n\n"
      "Examples:\n"
      "  signalbox simulate tests/scenarios/step.toml\n"
      "  signalbox simulate tests/scenarios/step.toml --seeds 20\n"
      "  signalbox simulate tests/scenarios/step.toml --compare --svg weights.svg\n"
      "  signalbox simulate tests/scenarios/mooncake.toml --rule least_request --routers 8 --pace 0.85\n"
      "  signalbox simulate tests/scenarios/step.toml --seed 7 --csv weights.csv --json report.json");
  command.add_option("scenario", arguments->scenario, "a TOML file, as in tests/scenarios")->required();
  command.add_option("--seed", arguments->seed, "in place of the scenario's");
  command
      .add_option("--seeds", arguments->seeds,
                  "runs it with so many seeds and tells their mean and their worst")
      ->check(CLI::Range(1, 10000));
  command.add_option("--control", arguments->control, "who sets the weights, in place of the scenario's")
      ->check(CLI::IsMember({"optimizer", "feedback"}));
  command.add_option("--rule", arguments->rule, "whose rule chooses engines, in place of the scenario's")
      ->check(CLI::IsMember(names_of<RoutingRule>()));
  command.add_option("--routers", arguments->routers, "so many routers in each cluster")
      ->check(CLI::Range(1, 64));
  command.add_option("--pace", arguments->pace, "loads come so many times as fast")
      ->check(CLI::PositiveNumber);
  command.add_flag("--compare", arguments->compare, "runs it under either control plane");
  command.add_option("--json", arguments->json,
                     "writes the report there; - writes it to stdout in place of the text");
  command.add_option("--csv", arguments->csv, "writes weights and loads over time there; - as above");
  command.add_option("--svg", arguments->svg, "draws the weights over time there; - as above");
  command.callback([arguments] { cli::finish("simulate", simulate(*arguments)); });
}

}  // namespace signalbox::simulate
