#include "tools/run/command.hpp"

#include <fmt/format.h>

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

/// As asked for, else as the configuration says.
Result<std::string> role_of(const Options& options, const config::Config& config, const ProcessName& id) {
  if (!options.role.empty()) return options.role;
  if (config.find_bus(id) != nullptr) return std::string(name_of(Role::forwarder));
  if (const config::Process* row = config.find_process(id)) return row->role;
  return fail(ErrorKind::not_found, fmt::format("no process or bus '{}'", id), config.file,
              "add a [[process]] or a [[bus]] with this id");
}

void run(const Options& options) {
  const auto fleet = cli::open_fleet(options.fleet);
  if (!fleet) return cli::finish("run", tl::unexpected(fleet.error()));
  const auto id = ProcessName::parse(options.id);
  if (!id) return cli::finish("run", tl::unexpected(id.error()));
  const auto role = role_of(options, fleet->config, *id);
  if (!role) return cli::finish("run", tl::unexpected(role.error()));
  const actors::RunOptions run{fleet->file, fleet->overrides, cli::own_program(), options.log_level};
  cli::finish(static_cast<cli::Exit>(actors::run_role(*role, fleet->config, *id, run)));
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("run", "Run one process of a fleet; what systemd or Kubernetes starts");
  command.footer(
      "Roles:\n" + actors::role_list() +
      "\n"
      "SIGTERM drains and ends it, SIGHUP reloads. The log is on stderr. A supervisor that names "
      "NOTIFY_SOCKET\n"
      "and WATCHDOG_USEC, as systemd does, is told when it has started and that its event loops turn.\n\n"
      "Example:\n  signalbox run cluster-router --config fleet.toml --id router-west");
  auto options = std::make_shared<Options>();
  command.add_option("ROLE", options->role, "what it is; if it is not given, what the configuration says");
  command.add_option("--id", options->id, "its id in the configuration")->required();
  cli::add_fleet_options(command, options->fleet);
  command.add_option("--log-level", options->log_level, "of its log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}))
      ->capture_default_str();
  command.callback([options] { run(*options); });
}

}  // namespace signalbox::run
