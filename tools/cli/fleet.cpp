#include "tools/cli/fleet.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "cluster-config/load/load.hpp"
#include "messages/base/described.hpp"
#include "tools/cli/state.hpp"

namespace signalbox::cli {
namespace {

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

Result<config::Config> read_config(const std::string& file, const config::Overrides& overrides) {
  auto loaded = config::load_config(file, overrides);
  if (loaded) return std::move(*loaded);
  std::string& report = loaded.error().report;
  while (report.ends_with('\n')) report.pop_back();
  return invalid("the configuration is wrong\n" + report);
}

}  // namespace

void add_fleet_options(CLI::App& command, FleetOptions& options) {
  command.add_option("--config", options.config, "the fleet's configuration")
      ->envname("SIGNALBOX_CONFIG")
      ->type_name("FILE");
  command.add_option("--port-base", options.port_base, "instead of the configuration's port_base");
  command.add_option("--state-dir", options.state_dir, "instead of the configuration's state_dir")
      ->type_name("DIR");
  command.add_option("--keys-dir", options.keys_dir, "instead of the configuration's keys_dir")
      ->type_name("DIR");
}

void add_fleet_argument(CLI::App& command, FleetOptions& options) {
  command.add_option("CONFIG", options.argument, "the fleet's configuration (or --config)")
      ->type_name("FILE");
}

Result<Fleet> open_fleet(const FleetOptions& options) {
  const std::string& file = options.argument.empty() ? options.config : options.argument;
  if (file.empty())
    return invalid("which fleet?", {}, "name its configuration with --config FILE or SIGNALBOX_CONFIG");
  Fleet fleet{absolute(file), {options.port_base, options.state_dir, options.keys_dir}, {}};
  auto loaded = read_config(file, fleet.overrides);
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  if (!options.port_base) {
    const auto running = read_state(absolute(loaded->state_dir));
    if (running && running->port_base != loaded->port_base && is_running(running->launcher)) {
      fleet.overrides.port_base = running->port_base;
      loaded = read_config(file, fleet.overrides);
      if (!loaded) return tl::unexpected(std::move(loaded.error()));
    }
  }
  fleet.config = std::move(*loaded);
  fleet.config.state_dir = absolute(fleet.config.state_dir);
  fleet.config.keys_dir = absolute(fleet.config.keys_dir);
  return fleet;
}

Result<std::string> find_state_dir(const FleetOptions& options) {
  if (options.state_dir) return absolute(*options.state_dir);
  const auto fleet = open_fleet(options);
  if (fleet) return fleet->config.state_dir;
  // What runs does not mind what was written into its file since; look whose it is among the usual folders.
  const std::string file = absolute(options.argument.empty() ? options.config : options.argument);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(config::default_state_root, none)) {
    const std::string folder = absolute(entry.path().string());
    const auto state = read_state(folder);
    if (state && state->config == file) return folder;
  }
  return tl::unexpected(fleet.error());
}

std::vector<bus::ForwarderEndpoints> forwarders_of(const config::Config& config) {
  std::vector<bus::ForwarderEndpoints> out;
  for (const config::Bus& bus : config.buses) out.push_back({bus.id, bus.publish, bus.subscribe});
  return out;
}

std::vector<bus::Identity> identities_of(const config::Config& config) {
  std::vector<bus::Identity> out;
  for (const config::Bus& bus : config.buses) out.push_back({bus.id, Role::forwarder, {}});
  for (const config::Process& process : config.processes)
    out.push_back({process.id, value_of<Role>(process.role).value_or(Role::module), process.cluster});
  out.push_back({ProcessName(launcher_id), Role::tool, {}});
  out.push_back({ProcessName(tool_id), Role::tool, {}});
  return out;
}

Result<std::string> read_file(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  if (in) bytes << in.rdbuf();
  if (!in || std::filesystem::is_directory(path))
    return fail(errno == ENOENT ? ErrorKind::not_found : ErrorKind::io,
                errno == 0 ? "cannot be read" : std::generic_category().message(errno), path);
  return std::move(bytes).str();
}

Status write_file(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".new";
  errno = 0;
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  if (!out)
    return fail(ErrorKind::io, fmt::format("cannot be written: {}", std::generic_category().message(errno)),
                path);
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  if (error) return fail(ErrorKind::io, fmt::format("cannot be written: {}", error.message()), path);
  return {};
}

}  // namespace signalbox::cli
