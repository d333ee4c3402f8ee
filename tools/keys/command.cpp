#include "tools/keys/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "messages/bus/keys.hpp"
#include "tools/cli/exit.hpp"
#include "tools/cli/fleet.hpp"

namespace signalbox::keys {
namespace {

Status init(const cli::FleetOptions& options) {
  const auto fleet = cli::open_fleet(options);
  if (!fleet) return tl::unexpected(fleet.error());
  const auto identities = cli::identities_of(fleet->config);
  if (const Status made = bus::keys_init(fleet->config.keys_dir, identities); !made) return made;
  fmt::print("made keys of {} processes in {}\n", identities.size(), fleet->config.keys_dir);
  fmt::print("give each process directory.tsv, fleet.mac and its own .secret; no process needs another's\n");
  return {};
}

std::string_view what_next(bus::Rotation state) {
  switch (state) {
    case bus::Rotation::announced:
      return "every process has new keys, which nobody uses yet. Give each directory.tsv, fleet.mac and its "
             "own "
             ".secret, restart all of them one after another, then call 'signalbox keys rotate' again";
    case bus::Rotation::switched:
      return "the new keys are in use from each process's next start, the old ones are still believed. Give "
             "each "
             "directory.tsv, restart all of them one after another, then call 'signalbox keys rotate' again";
    case bus::Rotation::steady:
      return "the old keys are worth nothing from each process's next start. Give each directory.tsv, "
             "fleet.mac and "
             "its own .secret, and restart all of them one after another: then the rotation is over";
  }
  return "";
}

struct RotateOptions {
  cli::FleetOptions fleet;
  bool show = false;
};

Status rotate(const RotateOptions& options) {
  const auto fleet = cli::open_fleet(options.fleet);
  if (!fleet) return tl::unexpected(fleet.error());
  const std::string& dir = fleet->config.keys_dir;
  if (options.show) {
    const auto now = bus::rotation_of(dir);
    if (!now) return tl::unexpected(now.error());
    fmt::print("generation {}: {}\n", now->generation,
               now->state == bus::Rotation::steady ? "no rotation is under way" : what_next(now->state));
    return {};
  }
  const auto done = bus::keys_rotate(dir);
  if (!done) return tl::unexpected(done.error());
  fmt::print("generation {}: {}\n", done->generation, what_next(done->state));
  return {};
}

void add_rotate(CLI::App& command) {
  CLI::App& sub = *command.add_subcommand("rotate", "Replace all keys of a running fleet, in three steps");
  sub.footer(
      "Each call takes one step: new keys are made known, then used, then the old ones are forgotten. "
      "Between two\n"
      "steps every process must have been started again with the files as they are then; no message is lost, "
      "since\n"
      "nobody ever speaks with keys that another does not know yet. An interrupted call can be made "
      "again.\n\n"
      "Examples:\n"
      "  signalbox keys rotate --config fleet.toml --keys-dir /etc/signalbox/keys\n"
      "  signalbox keys rotate --show --config fleet.toml     what step the fleet is at");
  auto options = std::make_shared<RotateOptions>();
  cli::add_fleet_options(sub, options->fleet);
  sub.add_flag("--show", options->show, "say what step it is at; change nothing");
  sub.callback([options] { cli::finish("keys rotate", rotate(*options)); });
}

}  // namespace

void add_keys(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("keys", "The keys of a fleet's processes");
  command.require_subcommand(1);
  command.footer("Example:\n  signalbox keys init --config fleet.toml --keys-dir /etc/signalbox/keys");
  add_rotate(command);
  CLI::App& sub =
      *command.add_subcommand("init", "Make keys for every process, forwarder and tool of a fleet");
  sub.footer(
      "Keys that are there already are never overwritten: exit code 1.\n\n"
      "Example:\n  signalbox keys init --config fleet.toml --keys-dir /etc/signalbox/keys");
  auto options = std::make_shared<cli::FleetOptions>();
  cli::add_fleet_options(sub, *options);
  sub.callback([options] { cli::finish("keys init", init(*options)); });
}

}  // namespace signalbox::keys
