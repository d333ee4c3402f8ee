// A decision in words: what was chosen and by how much, then every engine with what spoke for and against it.
#pragma once

#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/fleet_view/table.hpp"

namespace signalbox::observe {

/// `json`: a decision record as routers give it; `engines`: names by EngineIndex, as the fleet's configuration has them.
/// A sentence first, then the candidates, the attempts and the facts as tables. Errors: invalid.
Result<std::string> record_as_text(const std::string& json, const std::vector<std::string>& engines);

/// The sentence alone.
Result<std::string> record_sentence(const std::string& json, const std::vector<std::string>& engines);

/// The columns that every table of candidates begins with: the engine, its fate, and the parts of its cost.
std::vector<fleet_view::Column> cost_columns();

}  // namespace signalbox::observe
