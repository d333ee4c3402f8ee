#include "tools/cli/exit.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/cli/terminal.hpp"

namespace signalbox::cli {

Exit exit_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::not_found: return exit_usage;
    case ErrorKind::unavailable: return exit_unreachable;
    case ErrorKind::too_large:
    case ErrorKind::conflict:
    case ErrorKind::denied:
    case ErrorKind::io:
    case ErrorKind::internal: return exit_failed;
  }
  return exit_failed;
}

void finish(Exit code) {
  if (code != exit_ok) throw CLI::RuntimeError(code);
}

void finish(std::string_view command, const Status& status) {
  if (status) return;
  put(stderr, fmt::format("signalbox{}{}: {}\n", command.empty() ? "" : " ", command, status.error().text()));
  finish(exit_of(status.error()));
}

}  // namespace signalbox::cli
