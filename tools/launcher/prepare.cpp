#include "tools/launcher/prepare.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "tools/cli/state.hpp"
#include "tools/launcher/spawn.hpp"

namespace signalbox::launcher {
namespace {

// Blocks that take_any_ports() tries: below the range from which the kernel takes ports of outgoing connections.
constexpr std::uint16_t first_block = 20000;
constexpr std::uint16_t block_count = 120;

/// The guard speaks for fleets only; any other program may listen inside of the block.
bool nobody_listens(std::uint16_t base) {
  for (std::uint16_t offset = 0; offset < config::guard_offset; ++offset) {
    const auto address = net::resolve("127.0.0.1", static_cast<std::uint16_t>(base + offset));
    if (!address || !net::bind_to(*address, false)) return false;
  }
  return true;
}

}  // namespace

Result<PortBlock> take_ports(std::uint16_t base) {
  const auto address = net::resolve("127.0.0.1", static_cast<std::uint16_t>(base + config::guard_offset));
  if (!address) return tl::unexpected(address.error());
  auto guard = net::listen_on(*address, false);
  if (!guard)
    return fail(ErrorKind::conflict, fmt::format("another fleet has the ports from {}", base),
                address->text(), "stop it, or start this one with --port-base N or --free-ports");
  return PortBlock{base, std::move(*guard)};
}

Result<PortBlock> take_any_ports() {
  const auto start = static_cast<std::uint16_t>(::getpid() % block_count);
  for (std::uint16_t i = 0; i < block_count; ++i) {
    const auto base = static_cast<std::uint16_t>(first_block + (start + i) % block_count * config::port_span);
    if (auto taken = take_ports(base); taken && nobody_listens(base)) return taken;
  }
  return fail(ErrorKind::conflict, "every block of ports is taken", {}, "name a free one with --port-base N");
}

std::size_t end_leftovers(const std::string& state_dir) {
  std::size_t ended = 0;
  const auto state = cli::read_state(state_dir);
  if (!state) return ended;
  for (const auto& entry : state->processes)
    if (cli::is_running(entry.process)) {
      signal_group(entry.process.pid, SIGKILL);
      ++ended;
    }
  return ended;
}

Status take_state_folder(const cli::Fleet& fleet) {
  const std::string& folder = fleet.config.state_dir;
  std::error_code error;
  std::filesystem::create_directories(folder + "/logs", error);
  if (error) return fail(ErrorKind::io, error.message(), folder);
  ::chmod(folder.c_str(), 0700);
  const auto state = cli::read_state(folder);
  if (!state) return state.error().kind == ErrorKind::not_found ? Status() : tl::unexpected(state.error());
  if (cli::is_running(state->launcher))
    return fail(ErrorKind::conflict,
                fmt::format("a fleet is up here already, under launcher {}", state->launcher.pid), folder,
                "stop it with 'signalbox down', or give this one another --state-dir");
  end_leftovers(folder);
  cli::remove_state(folder);
  return {};
}

Result<bool> make_missing_keys(const cli::Fleet& fleet) {
  const config::Config& config = fleet.config;
  if (config.security != config::Security::curve) return false;
  if (std::filesystem::exists(config.keys_dir + "/directory.tsv")) return false;
  const auto made = bus::keys_init(config.keys_dir, cli::identities_of(config));
  if (!made) return tl::unexpected(made.error());
  return true;
}

Status check_keys(const cli::Fleet& fleet) {
  if (fleet.config.security != config::Security::curve) return {};
  for (const bus::Identity& identity : cli::identities_of(fleet.config)) {
    const auto keyring = bus::load_keyring(fleet.config.keys_dir, identity.id);
    if (!keyring) return tl::unexpected(keyring.error());
    const bool same =
        keyring->identity.role == identity.role && keyring->identity.cluster == identity.cluster;
    if (!same)
      return fail(
          ErrorKind::conflict,
          fmt::format("the keys of '{}' are those of a {}{}", identity.id, name_of(keyring->identity.role),
                      keyring->identity.cluster.empty()
                          ? ""
                          : fmt::format(" in cluster {}", keyring->identity.cluster)),
          fleet.config.keys_dir, "make new keys, or give the process another id");
  }
  return {};
}

}  // namespace signalbox::launcher
