// Which fleet a command is about: a configuration file, and where this run of it differs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster-config/schema/topology.hpp"
#include "messages/base/result.hpp"
#include "messages/bus/endpoint.hpp"
#include "messages/bus/keys.hpp"

namespace CLI {
class App;
}

namespace signalbox::cli {

/// As given on the command line.
struct FleetOptions {
  std::string argument;  ///< the configuration as a word of its own; outranks `config`
  std::string config;    ///< --config, or else the environment's
  std::optional<std::uint16_t> port_base;
  std::optional<std::string> state_dir;
  std::optional<std::string> keys_dir;
};

/// Adds --config (or $SIGNALBOX_CONFIG), --port-base, --state-dir and --keys-dir.
void add_fleet_options(CLI::App& command, FleetOptions& options);
/// Adds CONFIG as the first word after the command.
void add_fleet_argument(CLI::App& command, FleetOptions& options);

struct Fleet {
  std::string file;  ///< absolute
  config::Overrides overrides;
  config::Config config;  ///< its folders are absolute
};

/// Reads and checks the configuration. Without --port-base the one that a running `signalbox up` took is used. Errors:
/// not_found, and invalid with every mistake on a line of its own.
Result<Fleet> open_fleet(const FleetOptions& options);

/// The state folder of a fleet, for what only needs its launcher: also if the configuration of a running fleet has become
/// wrong meanwhile. Errors: as open_fleet().
Result<std::string> find_state_dir(const FleetOptions& options);

/// The forwarders of the configuration, as the bus wants them.
std::vector<bus::ForwarderEndpoints> forwarders_of(const config::Config& config);

/// Who needs keys: every process and forwarder, the launcher and the operators' tools.
std::vector<bus::Identity> identities_of(const config::Config& config);
using config::launcher_id;
using config::tool_id;

/// The bytes of a file. Errors: not_found, io.
Result<std::string> read_file(const std::string& path);
/// Replaces a file as a whole: a reader sees the old or the new one. Errors: io.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace signalbox::cli
