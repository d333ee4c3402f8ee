#include "tools/launcher/command.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "tools/cli/exit.hpp"
#include "tools/cli/fleet.hpp"
#include "tools/cli/state.hpp"
#include "tools/launcher/control.hpp"
#include "tools/launcher/prepare.hpp"
#include "tools/launcher/up.hpp"

namespace signalbox::launcher {
namespace {

constexpr Duration end_time = 5s;  // from SIGKILL to the end

Status down(const std::string& state_dir, Duration longest) {
  const auto state = cli::read_state(state_dir);
  if (!state && state.error().kind == ErrorKind::not_found) {
    fmt::print("nothing is up in {}; a fleet that was started elsewhere is named by its --state-dir\n",
               state_dir);
    return {};
  }
  if (!state) return tl::unexpected(state.error());
  if (cli::is_running(state->launcher)) {
    ::kill(state->launcher.pid, SIGTERM);
    if (!cli::wait_until_gone(state->launcher, longest)) {
      fmt::print(stderr, "the launcher did not end within {:.0f} s and is killed\n", to_seconds(longest));
      ::kill(state->launcher.pid, SIGKILL);
      cli::wait_until_gone(state->launcher, end_time);
    }
  }
  const std::size_t left = end_leftovers(state_dir);
  for (const auto& entry : state->processes)
    if (!cli::wait_until_gone(entry.process, end_time))
      return fail(ErrorKind::internal, fmt::format("{} cannot be killed", entry.name), state_dir);
  cli::remove_state(state_dir);
  fmt::print("fleet {} is down{}\n", state->fleet,
             left > 0 ? fmt::format("; {} processes that its launcher had left were killed", left) : "");
  return {};
}

/// Asks the launcher to do something with one process: "restart NAME", "stop NAME".
Status order(const std::string& state_dir, const std::string& what) {
  const auto answer = ask(state_dir, what);
  if (!answer) return tl::unexpected(answer.error());
  constexpr std::string_view refused = "error: ";
  if (answer->starts_with(refused))
    return fail(ErrorKind::not_found, answer->substr(refused.size(), answer->size() - refused.size() - 1));
  fmt::print("{}", *answer);
  return {};
}

/// Adds a command that works on a fleet that is up; `act` is called with its state folder.
template <class Options, class Act>
void on_fleet(CLI::App& command, std::shared_ptr<Options> options, Act act) {
  cli::add_fleet_options(command, options->fleet);
  command.callback([name = command.get_name(), options, act] {
    const auto state_dir = cli::find_state_dir(options->fleet);
    cli::finish(name, state_dir ? act(*state_dir, *options) : Status(tl::unexpected(state_dir.error())));
  });
}

}  // namespace

void add_up(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("up", "Start every process of a fleet on this machine and look after them");
  command.footer(
      "Ctrl-C stops everything in order. Logs are in the state folder's logs/. Missing keys are made.\n\n"
      "Examples:\n"
      "  signalbox up cluster-config/examples/laptop.toml\n"
      "  signalbox up cluster-config/examples/laptop.toml --detach\n"
      "  signalbox up fleet.toml --detach --free-ports --state-dir /tmp/second");
  auto options = std::make_shared<UpOptions>();
  cli::add_fleet_argument(command, options->fleet);
  cli::add_fleet_options(command, options->fleet);
  command.add_flag("--detach", options->detach, "return once the fleet is ready and leave it running");
  command.add_flag("--free-ports", options->free_ports, "take any free block of ports");
  command.add_option("--wait", options->wait_s, "with --detach: seconds to wait for it to be ready")
      ->capture_default_str();
  command.callback([options] { cli::finish(up(*options)); });
}

void add_down(CLI::App& app) {
  struct Options {
    cli::FleetOptions fleet;
    double wait_s = 60;
  };
  CLI::App& command = *app.add_subcommand("down", "Stop a fleet, also one whose launcher was killed");
  command.footer("Example:\n  signalbox down cluster-config/examples/laptop.toml");
  auto options = std::make_shared<Options>();
  cli::add_fleet_argument(command, options->fleet);
  command.add_option("--wait", options->wait_s, "seconds to wait for an orderly end before killing")
      ->capture_default_str();
  on_fleet(command, options, [](const std::string& state_dir, const Options& o) {
    return down(state_dir, from_seconds(o.wait_s));
  });
}

void add_status(CLI::App& app) {
  struct Options {
    cli::FleetOptions fleet;
    bool json = false;
  };
  CLI::App& command = *app.add_subcommand("status", "How the processes of a running fleet are");
  command.footer(
      "Exit code 3: the fleet is not up.\n\nExample:\n  signalbox status "
      "cluster-config/examples/laptop.toml --json");
  auto options = std::make_shared<Options>();
  cli::add_fleet_argument(command, options->fleet);
  command.add_flag("--json", options->json, "as JSON");
  on_fleet(command, options, [](const std::string& state_dir, const Options& o) -> Status {
    const auto answer = ask(state_dir, o.json ? "status json" : "status");
    if (!answer) return tl::unexpected(answer.error());
    fmt::print("{}", *answer);
    return {};
  });
}

void add_restart(CLI::App& app) {
  struct Options {
    cli::FleetOptions fleet;
    std::string process;
  };
  CLI::App& command =
      *app.add_subcommand("restart", "Stop one process of a running fleet in order and start it again");
  command.footer("Example:\n  signalbox restart optimizer-1 --config cluster-config/examples/laptop.toml");
  auto options = std::make_shared<Options>();
  command.add_option("PROCESS", options->process, "its id, or a simulated engine's name")->required();
  on_fleet(command, options, [](const std::string& state_dir, const Options& o) {
    return order(state_dir, "restart " + o.process);
  });
}

void add_stop(CLI::App& app) {
  struct Options {
    cli::FleetOptions fleet;
    std::string process;
  };
  CLI::App& command = *app.add_subcommand("stop", "Stop one process of a running fleet and leave it down");
  command.footer(
      "'signalbox restart' starts it again; 'signalbox down' stops the whole fleet.\n\n"
      "Example:\n  signalbox stop optimizer-2 --config cluster-config/examples/laptop.toml");
  auto options = std::make_shared<Options>();
  command.add_option("PROCESS", options->process, "its id, or a simulated engine's name")->required();
  on_fleet(command, options, [](const std::string& state_dir, const Options& o) {
    return order(state_dir, "stop " + o.process);
  });
}

}  // namespace signalbox::launcher
