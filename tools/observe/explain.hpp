// Why a request went where it went: asks the routers for the record of a decision.
#pragma once

#include <string>

#include "messages/base/result.hpp"
#include "tools/cli/fleet.hpp"

namespace signalbox::observe {

struct ExplainOptions {
  cli::FleetOptions fleet;
  std::string decision;  ///< from the answer's x-signalbox-decision
  bool json = false;
  double wait_s = 3;
};

/// Asks every router's operator port. Errors: unavailable if none answers, not_found if none keeps that decision.
Status explain(const ExplainOptions& options);

}  // namespace signalbox::observe
