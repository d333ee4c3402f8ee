#include "tools/simulate/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>

#include "tools/cli/exit.hpp"
#include "tools/simulate/render.hpp"
#include "tools/simulate/scenario_file.hpp"
#include "tools/simulate/world/world.hpp"

namespace signalbox::simulate {
namespace {

struct Arguments {
  std::string scenario;
  std::string json, csv;
  std::optional<std::uint64_t> seed;
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

Status simulate(const Arguments& arguments) {
  auto scenario = read_scenario(arguments.scenario);
  if (!scenario) return tl::unexpected(scenario.error());
  if (arguments.seed) scenario->seed = *arguments.seed;
  World world(*scenario);
  const Report report = world.run();
  if (arguments.json != "-" && arguments.csv != "-") fmt::print("{}", as_text(report));
  if (const Status written = write(arguments.json, as_json(report)); !written) return written;
  return write(arguments.csv, as_csv(report));
}

}  // namespace

void set_up_simulate(CLI::App& command) {
  auto arguments = std::make_shared<Arguments>();
  command.description("Runs a fleet in virtual time: its own machines, simulated engines");
  command.footer(
      "The same scenario with the same seed gives the same report.\n\n"
      "Examples:\n"
      "  signalbox-simulate tests/scenarios/step.toml\n"
      "  signalbox-simulate tests/scenarios/step.toml --seed 7 --csv weights.csv --json report.json");
  command.add_option("scenario", arguments->scenario, "a TOML file, as in tests/scenarios")->required();
  command.add_option("--seed", arguments->seed, "in place of the scenario's");
  command.add_option("--json", arguments->json,
                     "writes the report there; - writes it to stdout in place of the text");
  command.add_option("--csv", arguments->csv, "writes weights and loads over time there; - as above");
  command.callback([arguments] { cli::finish("simulate", simulate(*arguments)); });
}

}  // namespace signalbox::simulate
