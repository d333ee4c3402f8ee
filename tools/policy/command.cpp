#include "tools/policy/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cluster-config/policy/compile.hpp"
#include "tools/cli/exit.hpp"
#include "tools/cli/fleet.hpp"

namespace signalbox::policy_command {
namespace {

struct Options {
  std::vector<std::string> files;
  bool write = false;
  bool check = false;
  bool classes = false;
};

Result<std::string> read(const std::string& file) { return cli::read_file(file); }

/// True if it compiles; says what it found.
bool check_file(const std::string& file, const std::string& text, bool classes) {
  const policy::Compilation compiled = policy::compile(text);
  if (!compiled.policy) {
    fmt::print(stderr, "{}", policy::render(compiled.errors, text, file));
    return false;
  }
  const policy::CompiledPolicy& policy = *compiled.policy;
  fmt::print("{}: {} version {}, {} models, {} classes, hash {}\n", file, policy.name, policy.version,
             policy.models.size(), policy.classes.size(), policy.hash.hex());
  for (std::size_t i = 0; classes && i < policy.classes.size(); ++i)
    fmt::print("{}\n", policy.explain(ClassIndex(i)));
  return true;
}

cli::Exit check_all(const Options& options) {
  bool good = true;
  for (const std::string& file : options.files) {
    const auto text = read(file);
    if (!text) cli::finish("policy check", tl::unexpected(text.error()));
    good = check_file(file, *text, options.classes) && good;
  }
  return good ? cli::exit_ok : cli::exit_failed;
}

cli::Exit format_all(const Options& options) {
  bool good = true;
  for (const std::string& file : options.files) {
    const auto text = read(file);
    if (!text) cli::finish("policy fmt", tl::unexpected(text.error()));
    const auto formatted = policy::format(*text);
    if (!formatted) {
      fmt::print(stderr, "{}: {}\n", file, formatted.error().text());
      good = false;
    } else if (options.check) {
      if (*formatted == *text) continue;
      fmt::print(stderr, "{}: is not formatted; 'signalbox policy fmt --write' does it\n", file);
      good = false;
    } else if (!options.write) {
      fmt::print("{}", *formatted);
    } else if (*formatted != *text) {
      cli::finish("policy fmt", cli::write_file(file, *formatted));
      fmt::print("{}: formatted\n", file);
    }
  }
  return good ? cli::exit_ok : cli::exit_failed;
}

}  // namespace

void add_policy(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("policy", "Check and format policy files");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  signalbox policy check cluster-config/examples/laptop.policy\n"
      "  signalbox policy fmt --write fleet.policy");
  auto options = std::make_shared<Options>();

  CLI::App& check =
      *command.add_subcommand("check", "Parse, check and resolve; every mistake with line and column");
  check.footer(
      "Exit codes: 1 a policy is wrong, 2 a file cannot be found.\n\n"
      "Example:\n  signalbox policy check --classes cluster-config/examples/laptop.policy");
  check.add_option("FILE", options->files, "policy files")->required();
  check.add_flag("--classes", options->classes, "say each class in words");
  check.callback([options] { cli::finish(check_all(*options)); });

  CLI::App& format =
      *command.add_subcommand("fmt", "The one layout; comments are kept, the hash does not change");
  format.footer("Example:\n  signalbox policy fmt --write cluster-config/examples/laptop.policy");
  format.add_option("FILE", options->files, "policy files")->required();
  format.add_flag("--write", options->write, "into the file instead of to stdout");
  format.add_flag("--check", options->check, "change nothing; exit code 1 if one is not formatted");
  format.callback([options] { cli::finish(format_all(*options)); });
}

}  // namespace signalbox::policy_command
