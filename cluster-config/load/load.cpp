#include "cluster-config/load/load.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace signalbox::config {
namespace {

constexpr std::size_t most_config_bytes = 16 << 20;

tl::unexpected<LoadFailure> failure(std::string report) {
  return tl::unexpected(LoadFailure{std::move(report)});
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::size_t limit) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(ErrorKind::io, fmt::format("cannot read it: {}", std::strerror(errno)), path,
                "check the path");
  std::string text;
  std::string block(64 << 10, '\0');
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > limit)
      return fail(ErrorKind::too_large, fmt::format("it is longer than {} bytes", limit), path);
  }
  if (in.bad()) return fail(ErrorKind::io, "cannot read it", path, "check that it is a file");
  return text;
}

tl::expected<Config, LoadFailure> load_config(const std::string& config_file, const Overrides& overrides) {
  const auto text = read_text_file(config_file, most_config_bytes);
  if (!text) return failure(text.error().text() + "\n");
  Parsed parsed = parse_config(*text, config_file, overrides);
  if (!parsed.config) return failure(render(parsed.mistakes, config_file));
  return std::move(*parsed.config);
}

tl::expected<LoadedPolicy, LoadFailure> load_policy(const std::string& policy_file) {
  auto text = read_text_file(policy_file, policy::max_policy_bytes);
  if (!text) return failure(text.error().text() + "\n");
  policy::Compilation compiled = policy::compile(*text);
  if (!compiled.policy) return failure(policy::render(compiled.errors, *text, policy_file));
  return LoadedPolicy{std::move(*compiled.policy), std::move(*text)};
}

tl::expected<Loaded, LoadFailure> load(const std::string& config_file, const Overrides& overrides) {
  auto config = load_config(config_file, overrides);
  if (!config) return tl::unexpected(config.error());
  auto policy = load_policy(config->policy);
  if (!policy) return tl::unexpected(policy.error());
  if (const auto mistakes = match(*config, policy->policy); !mistakes.empty())
    return failure(render(mistakes, config_file));
  return Loaded{std::move(*config), std::move(policy->policy), std::move(policy->text)};
}

}  // namespace signalbox::config
