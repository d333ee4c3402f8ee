#include "cluster-config/load/load.hpp"

#include <fmt/format.h>

#include <algorithm>
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

Result<std::string> read_secret_line(const std::string& path) {
  constexpr std::size_t most_bytes = 64 << 10;
  const auto text = read_text_file(path, most_bytes);
  if (!text) return tl::unexpected(text.error());
  constexpr std::string_view blanks = " \t\r";
  std::string line = text->substr(0, text->find('\n'));
  line.erase(0, std::min(line.find_first_not_of(blanks), line.size()));
  line.erase(line.find_last_not_of(blanks) + 1);
  const bool printable = std::ranges::all_of(line, [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (line.empty() || !printable)
    return invalid("its first line holds no key", path, "write the key alone into it");
  return line;
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
