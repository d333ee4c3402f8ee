#include "tools/simulate/world/scenario.hpp"

#include <algorithm>

namespace signalbox::simulate {

void use_control(Scenario& scenario, config::ControlKind kind) {
  constexpr std::string_view optimizer = "global-optimizer", feedback = "feedback-balancer";
  const bool legacy = kind == config::ControlKind::feedback;
  scenario.config.control.kind = kind;
  auto& processes = scenario.config.processes;
  const auto controls = [&](const config::Process& p) { return p.role == optimizer || p.role == feedback; };
  const auto first = std::find_if(processes.begin(), processes.end(), controls);
  if (first == processes.end()) return;
  first->role = legacy ? feedback : optimizer;
  if (legacy) processes.erase(std::remove_if(first + 1, processes.end(), controls), processes.end());
}

}  // namespace signalbox::simulate
