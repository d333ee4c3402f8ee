// How scenarios speak to this role: three engines serve m, one serves n; verdicts are repeated each minute.
#pragma once

#include "actors/health_monitor/machine/machine.hpp"
#include "tests/support/scenario.hpp"

namespace signalbox::health_monitor::testing {

inline schema::FleetTable table() {
  schema::FleetTable out;
  out.clusters = {{ClusterName("east"), DomainName("us-east"), DomainName("us")}};
  for (const auto& [name, model] : {std::pair{"e1", "m"}, {"e2", "m"}, {"e3", "m"}, {"e4", "n"}}) {
    schema::EngineRow row;
    row.name = EngineName(name);
    row.cluster = ClusterIndex(0u);
    row.rack = DomainName(name);
    row.models = {ModelName(model)};
    out.engines.push_back(row);
  }
  out.content = kit::content_of(out);
  return out;
}

inline tests::Driver<Machine> driver() {
  tests::Driver<Machine> out;
  out.make = [] { return Machine({ProcessName("monitor-1"), table(), 60s, 200ms, 0s}); };
  out.input = [](const std::string&, tests::Reader& in) -> Probed { in.fail("nothing is probed here"); };
  out.show_command = [](const Probe& probe) { return probe.url; };
  out.show_view = [](const Machine& machine) {
    std::string text;
    for (const auto& e : machine.view().engines)
      text += fmt::format("    {} {} {:.1f} {}\n", e.engine, name_of(e.state), e.capacity_factor,
                          name_of(e.evidence));
    return text;
  };
  out.words = {{"table", table().content.hex()}};
  return out;
}

}  // namespace signalbox::health_monitor::testing
