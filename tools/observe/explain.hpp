// Why a request went where it went: finds the record of a decision, wherever it is kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/schema/catalog.hpp"
#include "tools/cli/source.hpp"
#include "tools/fleet_view/table.hpp"

namespace signalbox::observe {

struct ExplainOptions {
  cli::SourceOptions source;
  std::string decision;  ///< from the answer's x-signalbox-decision
  std::string ring;      ///< a router's ring file, or a copy: nobody is asked then
  std::vector<std::string> what_if;
  bool json = false;
  double wait_s = 3;
};

/// Prints why. Errors: unavailable if nobody answers, not_found if nobody keeps that decision, invalid for a what-if.
Status explain(const ExplainOptions& options);

/// The record of the decision whose id `text` is, perhaps with what surrounds it in a header, as JSON: from the routers' operator ports, from a recording, or, on the bus of a replay, as it is said
/// within `longest`. Errors: unavailable, not_found.
Result<std::string> find_record(const cli::Source& source, const std::string& text, Duration longest);
/// Why the plan that the decision of a record read gave its class these weights: tables, the first says which plan. None if
/// that is not known.
std::vector<fleet_view::Table> reasons_of(const cli::Source& source, const std::string& json,
                                          Duration longest);
/// The record in words. Errors: as find_record().
Result<std::string> explanation_of(const cli::Source& source, const std::string& decision, Duration longest);

/// What a decision read, with the policy that it obeyed, where both were recorded. The last attempt's, of several.
struct FoundInputs {
  schema::DecisionInputs inputs;
  std::string policy;  ///< its text
};
std::optional<FoundInputs> find_inputs(const cli::Source& source, const std::string& text);

}  // namespace signalbox::observe
