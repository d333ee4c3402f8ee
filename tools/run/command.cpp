#include "tools/run/command.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "actors/roles/run.hpp"
#include "tools/cli/exit.hpp"
#include "tools/cli/fleet.hpp"
#include "tools/cli/state.hpp"

namespace signalbox::run {
namespace {

struct Options {
  cli::FleetOptions fleet;
  std::string role;
  std::string id;
  std::string log_level = "info";
};

void run(const Options& options) {
  const auto fleet = cli::open_fleet(options.fleet);
  if (!fleet) return cli::finish("run", tl::unexpected(fleet.error()));
  const auto id = ProcessName::parse(options.id);
  if (!id) return cli::finish("run", tl::unexpected(id.error()));
  const actors::RunOptions run{fleet->file, fleet->overrides, cli::own_program(), options.log_level};
  cli::finish(static_cast<cli::Exit>(actors::run_role(options.role, fleet->config, *id, run)));
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("run", "Run one process of a fleet; what systemd or Kubernetes starts");
  command.footer("Roles:\n" + actors::role_list() +
                 "\n"
                 "SIGTERM drains and ends it, SIGHUP reloads. The log is on stderr.\n\n"
                 "Example:\n  signalbox run cluster-router --config fleet.toml --id router-west");
  auto options = std::make_shared<Options>();
  command.add_option("ROLE", options->role, "what it is")->required();
  command.add_option("--id", options->id, "its id in the configuration")->required();
  cli::add_fleet_options(command, options->fleet);
  command.add_option("--log-level", options->log_level, "of its log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}))
      ->capture_default_str();
  command.callback([options] { run(*options); });
}

}  // namespace signalbox::run
