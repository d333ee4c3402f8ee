// The loop of `top`: hears, draws, takes keys.
#pragma once

#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/cli/source.hpp"

namespace signalbox::top {

struct TopOptions {
  cli::SourceOptions source;
  std::string sort = "fleet";
  std::string filter;
  double every_s = 0.5;
  double speed = 1;
};

std::vector<std::string> sort_names();

/// Until the operator ends it. Errors: unavailable without a terminal or a forwarder.
Status top(const TopOptions& options);

}  // namespace signalbox::top
