// A decision in words: what was chosen and by how much, then every engine with what spoke for and against it.
#pragma once

#include <string>
#include <vector>

#include "messages/base/ids.hpp"
#include "messages/base/result.hpp"
#include "tools/fleet_view/table.hpp"

namespace signalbox::observe {

/// `json`: a decision record as routers give it; `engines`: names by EngineIndex, as the fleet's configuration has them.
/// A sentence first, then the candidates, the attempts, the plan's `reasons` and the facts as tables. Errors: invalid.
Result<std::string> record_as_text(const std::string& json, const std::vector<std::string>& engines,
                                   const std::vector<fleet_view::Table>& reasons = {});

/// The sentence alone.
Result<std::string> record_sentence(const std::string& json, const std::vector<std::string>& engines);

/// A decision, and whose plan it read, for what class, in which version; empty where none was in force. Errors: invalid.
struct PlanOfRecord {
  std::string decision;
  ClusterName cluster;
  std::string class_name;
  std::string version;
};
Result<PlanOfRecord> plan_of_record(const std::string& json);

/// The columns that every table of candidates begins with: the engine, its fate, and the parts of its cost.
std::vector<fleet_view::Column> cost_columns();

}  // namespace signalbox::observe
