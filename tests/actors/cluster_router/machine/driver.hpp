// How scenarios speak to this role.
#pragma once

#include "actors/cluster_router/machine/machine.hpp"
#include "tests/support/scenario.hpp"
#include "tests/support/small_fleet.hpp"

namespace signalbox::cluster_router::testing {

inline tests::Driver<cluster_router::Machine> driver(Kept kept = {}) {
  tests::Driver<cluster_router::Machine> out;
  out.words = tests::small_words();
  out.make = [kept] {
    Options o;
    o.id = ProcessName("router-1");
    o.cluster = ClusterName("east");
    o.incarnation = {3, 9};
    o.table = tests::small_table();
    o.kept = kept;
    return cluster_router::Machine(o);
  };
  // tell batch number=3 offered=4 attempts=4 resets=1 blocks=2: of loop 0, class 0, engine 0
  out.input = [](const std::string& name, tests::Reader& in) -> cluster_router::Machine::Input {
    if (name == "listening") return GatewayState{true, "127.0.0.1:80"};
    routing::Batch batch;
    if (name == "untrusted" || name == "session_failed")
      batch.problems = {{tests::small_table().engines[0].name, name == "untrusted", "what it showed"}};
    batch.policy = tests::small_policy().hash;
    batch.table = tests::small_table().content;
    batch.block_bytes = 1024;
    schema::DemandRow demand{.request_class = ClassIndex(0)};
    schema::OutcomeRow outcome{.engine = EngineIndex(0)};
    while (!in.done()) {
      const std::string key = in.word();
      in.take('=');
      const auto value = tests::number<std::uint64_t>(in.word());
      if (key == "number") batch.number = value;
      if (key == "offered") demand.offered = demand.admitted = value;
      if (key == "attempts") outcome.attempts = value, outcome.inflight = static_cast<double>(value);
      if (key == "resets") outcome.resets = value;
      if (key == "succeeded") outcome.succeeded = value;
      for (std::uint64_t i = 0; key == "blocks" && i < value; ++i)
        batch.sent.push_back({EngineIndex(0), 100 + i});
    }
    batch.demand = {demand};
    batch.outcomes = {outcome};
    return BatchIn{std::move(batch)};
  };
  out.show_command = [](const SwapView& swap) {
    const routing::View& v = *swap.view;
    std::string text =
        fmt::format("swap view {}: policy {} snapshot {} routers {} covered {}", v.generation,
                    v.policy->version, v.snapshot ? fmt::format("{}", v.snapshot->version) : "none",
                    v.routers, fmt::join(v.covered_batches, ","));
    for (std::size_t e = 0; e < v.engines.size(); ++e)
      text += fmt::format("; {} {} in flight {}", v.table->engines[e].name, name_of(v.engines[e].state),
                          v.engines[e].requests);
    return text + fmt::format("; sent by others {}", v.sent.size());
  };
  out.show_view = [](const cluster_router::Machine& m) {
    const auto v = m.view();
    return fmt::format("    ready={} state={}\n", v.standing.ready, v.standing.state);
  };
  return out;
}

}  // namespace signalbox::cluster_router::testing
