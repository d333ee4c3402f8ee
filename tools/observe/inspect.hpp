// The state of the fleet now, as tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/cli/source.hpp"

namespace signalbox::observe {

struct InspectOptions {
  cli::SourceOptions source;
  std::string what;
  std::string engine;                ///< of `weights`; empty: all
  std::string cluster;               ///< of `snapshot` and `weights`; empty: all
  std::string sort;                  ///< a column; "-column": the largest first
  std::string filter;                ///< rows that hold this; "column=text": whole, in that column
  std::optional<double> watch_s;     ///< again and again
  std::optional<std::size_t> width;  ///< instead of the terminal's; 0: any
  bool json = false;
  double wait_s = 3;
};

/// What can be inspected: a name and a sentence each.
struct Subject {
  std::string_view name;
  std::string_view sentence;
};
std::vector<Subject> subjects();

/// Listens until everything that the subject needs was heard, at most `wait_s`, and prints it. Errors: unavailable if
/// nothing was heard, not_found for a name that the fleet does not know, conflict if the fleet has none of it.
Status inspect(const InspectOptions& options);

}  // namespace signalbox::observe
