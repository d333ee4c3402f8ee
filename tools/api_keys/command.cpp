#include "tools/api_keys/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "tools/api_keys/key_file.hpp"
#include "tools/cli/exit.hpp"

namespace signalbox::api_keys {
namespace {

struct Options {
  std::string file;
  std::string name, tenant;
  std::string criticality = "critical";
  double requests_per_minute = 0, tokens_per_minute = 0;
  bool given = false;
};

/// One line of standard input.
std::string read_line() {
  std::string out;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) out += static_cast<char>(c);
  return out;
}

Status add(const Options& options) {
  const auto name = ProcessName::parse(options.name);
  if (!name) return tl::unexpected(name.error());
  if (!options.tenant.empty())
    if (const auto tenant = ProcessName::parse(options.tenant); !tenant)
      return tl::unexpected(tenant.error());
  auto file = KeyFile::open(options.file, true);
  if (!file) return tl::unexpected(file.error());
  config::ApiKey entry;
  entry.name = options.name;
  entry.tenant = options.tenant;
  entry.most = *parse_criticality(options.criticality);
  entry.requests_per_minute = options.requests_per_minute;
  entry.tokens_per_minute = options.tokens_per_minute;
  const std::string key = options.given ? read_line() : new_key();
  constexpr std::size_t shortest = 20;
  if (key.size() < shortest)
    return invalid(fmt::format("a key of {} characters can be guessed", key.size()), {},
                   fmt::format("give one of at least {} random characters", shortest));
  if (const Status added = file->add(std::move(entry), key); !added) return added;
  if (!options.given) fmt::print("{}\n", key);
  fmt::print(stderr, "added '{}' to {}{}; routers take it on SIGHUP\n", options.name, options.file,
             options.given ? "" : ": the key is shown this once, and is nowhere");
  return {};
}

Status revoke(const Options& options) {
  auto file = KeyFile::open(options.file, false);
  if (!file) return tl::unexpected(file.error());
  if (const Status removed = file->remove(options.name); !removed) return removed;
  fmt::print(stderr, "removed '{}' from {}; routers refuse it from their next SIGHUP on\n", options.name,
             options.file);
  return {};
}

std::string rate(double per_minute) { return per_minute > 0 ? fmt::format("{}/min", per_minute) : "-"; }

Status list(const Options& options) {
  const auto file = KeyFile::open(options.file, false);
  if (!file) return tl::unexpected(file.error());
  fmt::print("{:<24} {:<20} {:<12} {:>14} {:>16}\n", "key", "tenant", "criticality", "requests", "tokens");
  for (const config::ApiKey& key : file->keys().keys)
    fmt::print("{:<24} {:<20} {:<12} {:>14} {:>16}\n", key.name, key.tenant.empty() ? "(any)" : key.tenant,
               to_string(key.most), rate(key.requests_per_minute), rate(key.tokens_per_minute));
  return {};
}

}  // namespace

void add_api_keys(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("apikey", "The API keys of a fleet's clients");
  command.require_subcommand(1);
  command.footer(
      "The file holds hashes, never keys; router.api_keys of the configuration names it.\n\n"
      "Examples:\n"
      "  signalbox apikey new keys.toml --name web --tenant shop --requests-per-minute 600\n"
      "  signalbox apikey list keys.toml\n"
      "  signalbox apikey revoke keys.toml web");
  const auto sub = [&command](const char* name, const char* sentence, Status (*run)(const Options&)) {
    CLI::App& made = *command.add_subcommand(name, sentence);
    auto options = std::make_shared<Options>();
    made.add_option("FILE", options->file, "the file of API keys")->required();
    made.callback(
        [options, run, full = fmt::format("apikey {}", name)] { cli::finish(full, run(*options)); });
    return std::pair<CLI::App*, Options*>(&made, options.get());
  };
  {
    const auto [made, options] = sub("new", "Make a key, print it once, and add its hash to the file", add);
    made->footer(
        "The file is begun if it is not there. Exit codes: 1 a name that is there, 2 a mistake in the file.");
    made->add_option("--name", options->name, "what logs call it")->required();
    made->add_option("--tenant", options->tenant, "the tenant of its requests; else they name it themselves");
    made->add_option("--criticality", options->criticality, "the highest that its requests can have")
        ->check(CLI::IsMember({"sheddable", "standard", "critical"}))
        ->capture_default_str();
    made->add_option("--requests-per-minute", options->requests_per_minute, "0: no limit")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    made->add_option("--tokens-per-minute", options->tokens_per_minute, "of prompts and answers; 0: no limit")
        ->check(CLI::Range(0.0, 1e12))
        ->capture_default_str();
    made->add_flag("--from-stdin", options->given,
                   "read a key that exists already, one line, instead of making one");
  }
  sub("list", "Show the keys of a file", list);
  {
    const auto [made, options] = sub("revoke", "Remove a key from the file", revoke);
    made->add_option("NAME", options->name, "the key")->required();
  }
}

}  // namespace signalbox::api_keys
