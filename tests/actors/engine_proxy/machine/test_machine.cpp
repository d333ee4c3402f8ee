#include "actors/engine_proxy/machine/machine.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/scenario.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;

namespace {

tests::Driver<Machine> driver() {
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
    r.number = std::stoull(in.word());
    const std::string how = in.word();
    if (how == "unreachable") r.fault = FetchFault::unreachable, r.detail = "connection refused";
    if (how == "timed_out") r.fault = FetchFault::timed_out, r.detail = "no answer in 1 s";
    if (r.fault == FetchFault::none) r.status = std::stoi(how);
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

}  // namespace

BOOST_AUTO_TEST_CASE(the_transcript_is_as_recorded) {
  const auto first = tests::check_transcript("engine_proxy", driver());
  BOOST_TEST(first == tests::check_transcript("engine_proxy", driver()));
}

BOOST_AUTO_TEST_CASE(nonsense_of_an_engine_is_absent_and_the_signal_stays_valid) {
  Machine machine = driver().make();
  Machine::Effects effects;
  machine.on_wake(instant_at(0s), effects);
  effects = {};
  ScrapeResult result{
      1, 0, FetchFault::none, 200, "vllm:num_requests_running -5\nvllm:kv_cache_usage_perc 80\n", {}};
  machine.on(Machine::Input(result), instant_at(10ms), effects);
  const schema::EngineSignal* signal = nullptr;
  for (const auto& message : effects.publish)
    if (const auto* s = std::get_if<schema::EngineSignal>(&message)) signal = s;
  BOOST_REQUIRE(signal);
  BOOST_TEST(schema::check(*signal).has_value());
  BOOST_TEST(!signal->running.has_value());
  BOOST_TEST(!signal->kv_usage.has_value());
}
