// How scenarios speak to this role.
#pragma once

#include "actors/engine_proxy/machine/machine.hpp"
#include "tests/support/scenario.hpp"

namespace signalbox::engine_proxy::testing {

inline tests::Driver<signalbox::engine_proxy::Machine> driver() {
  tests::Driver<Machine> out;
  out.make = [] {
    Options o;
    o.engine = EngineName("e1");
    o.cluster = ClusterName("west");
    o.kind = EngineKind::sim;
    o.url = "http://127.0.0.1:9";
    o.curve = {.a_s = 0.02, .b_s = 0.001};
    o.kv_tokens = 1000;
    o.max_batch = 8;
    o.models = {ModelName("m")};
    o.fresh = {1, 5};
    return Machine(o);
  };
  // tell page <number> <fault>|<status> key=value ...: a reading whose metrics are vllm:key value
  out.input = [](const std::string& name, tests::Reader& in) -> Machine::Input {
    if (name == "removed") return Removed{in.rest()};
    ScrapeResult r;
    r.number = tests::number<std::uint64_t>(in.word());
    const std::string how = in.word();
    if (how == "unreachable") r.fault = FetchFault::unreachable, r.detail = "connection refused";
    if (how == "timed_out") r.fault = FetchFault::timed_out, r.detail = "no answer in 1 s";
    if (how == "untrusted") r.fault = FetchFault::untrusted, r.detail = "certificate rejected";
    if (r.fault == FetchFault::none) r.status = tests::number<int>(how);
    while (!in.done()) {
      const std::string key = in.word();
      if (!in.take('=')) {
        r.body = key;
        break;
      }
      r.body += (key == "start" ? "process_start_time_seconds" : "vllm:" + key) + " " + in.word() + "\n";
    }
    return r;
  };
  out.show_command = [](const StartScrape& s) {
    return fmt::format("scrape {} page {} {} within {} s", s.number, s.page, s.url, to_seconds(s.timeout));
  };
  out.show_view = [](const Machine& m) {
    return fmt::format("    ready={} state={}\n", m.view().standing.ready, m.view().standing.state);
  };
  return out;
}

}  // namespace signalbox::engine_proxy::testing
