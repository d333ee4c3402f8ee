#include "tools/simulate/world/scenario.hpp"

#include <algorithm>
#include <string>

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

void use_routers(Scenario& scenario, std::size_t per_cluster) {
  auto& processes = scenario.config.processes;
  std::vector<config::Process> out;
  std::vector<ClusterName> done;
  for (const config::Process& process : processes) {
    if (process.role != "cluster-router") {
      out.push_back(process);
      continue;
    }
    if (std::find(done.begin(), done.end(), process.cluster) != done.end()) continue;
    done.push_back(process.cluster);
    for (std::size_t i = 1; i <= per_cluster; ++i) {
      out.push_back(process);
      if (i > 1) out.back().id = ProcessName(process.id.str() + "-" + std::to_string(i));
    }
  }
  processes = std::move(out);
}

void use_pace(Scenario& scenario, double factor) {
  for (Load& load : scenario.loads) {
    load.rate_per_s *= factor;
    for (TraceRow& row : load.trace) row.at = from_seconds(to_seconds(row.at) / factor);
  }
}

}  // namespace signalbox::simulate
