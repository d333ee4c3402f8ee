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

}  // namespace

void add_keys(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("keys", "The keys of a fleet's processes");
  command.require_subcommand(1);
  command.footer("Example:\n  signalbox keys init --config fleet.toml --keys-dir /etc/signalbox/keys");
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
