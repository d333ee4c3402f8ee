// Reads configuration and policy from their files and checks them, each by itself and against each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster-config/policy/compile.hpp"
#include "cluster-config/schema/topology.hpp"
#include "messages/base/result.hpp"

namespace signalbox::config {

/// A configuration with the policy that it names.
struct Loaded {
  Config config;
  policy::CompiledPolicy policy;
  std::string policy_text;  ///< as the file has it
};

/// Every mistake that was found, ready to print: lines of "file:line:column: what; hint".
struct LoadFailure {
  std::string report;
};

/// Reads and checks both files.
tl::expected<Loaded, LoadFailure> load(const std::string& config_file, const Overrides& overrides = {});

/// The configuration alone: its policy file need not exist.
tl::expected<Config, LoadFailure> load_config(const std::string& config_file,
                                              const Overrides& overrides = {});

struct LoadedPolicy {
  policy::CompiledPolicy policy;
  std::string text;
};
tl::expected<LoadedPolicy, LoadFailure> load_policy(const std::string& policy_file);

/// What the two disagree about: models, zones, classes that no engine may serve. Places are of the configuration.
std::vector<Mistake> match(const Config& config, const policy::CompiledPolicy& policy);

/// The policy's limits on how classes are divided that even the whole fleet cannot keep, and match_reserves(). Part of match(); the policy's
/// lines are in the texts.
std::vector<Mistake> match_limits(const Config& config, const policy::CompiledPolicy& policy);
/// Capacity that the policy wants for a class and the whole fleet does not have.
std::vector<Mistake> match_reserves(const Config& config, const policy::CompiledPolicy& policy);

/// The first line of a file that holds a secret, without blanks around it. Errors: io, invalid (nothing is there).
Result<std::string> read_secret_line(const std::string& path);

/// A whole regular file of at most `limit` bytes. Errors: io, too_large.
Result<std::string> read_text_file(const std::string& path, std::size_t limit);

}  // namespace signalbox::config
