// Worlds without a plan: keeper, proxies and routers only.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "cluster-config/load/load.hpp"
#include "tests/support/source_dir.hpp"
#include "tools/simulate/world/world.hpp"

using namespace signalbox;
using namespace signalbox::simulate;

namespace {

Scenario plain(Duration duration = 40s) {
  auto loaded = config::load(tests::source_path("cluster-config/examples/laptop.toml"));
  BOOST_REQUIRE_MESSAGE(loaded.has_value(), (loaded ? "" : loaded.error().report));
  Scenario scenario;
  scenario.name = "plain";
  scenario.config = loaded->config;
  scenario.policy = loaded->policy_text;
  std::erase_if(scenario.config.processes, [](const config::Process& p) {
    return p.role != "policy-keeper" && p.role != "engine-proxy" && p.role != "cluster-router";
  });
  scenario.duration = duration;
  scenario.warmup = 10s;
  Load load;
  load.name = "chat";
  load.cluster = ClusterName("east");
  load.tenant = "acme";
  load.model = "m-large";
  load.rate_per_s = 6;
  load.prompt = {300, 0.5};
  load.output = {50, 0.5};
  scenario.loads = {load};
  return scenario;
}

Happening happening(Duration at, HappeningKind kind, std::string_view engine, double value) {
  Happening h;
  h.at = at;
  h.kind = kind;
  h.engine = EngineName(engine);
  h.value = value;
  return h;
}

}  // namespace

BOOST_AUTO_TEST_CASE(requests_are_served_and_the_first_bytes_are_as_late_as_the_engines_are_slow) {
  const Scenario scenario = plain();
  World world(scenario);
  const auto report = world.run();
  for (const std::string& warning : report.warnings) BOOST_TEST_MESSAGE(warning);
  const PhaseLoad& load = report.phases.at(0).loads.at(0);
  BOOST_TEST(load.offered > 120u);
  BOOST_TEST(load.served + 20 > load.offered);
  BOOST_TEST(load.refusals() == 0u);
  BOOST_TEST(load.failures() == 0u);
  // 300 tokens at 0.1 ms and a step of 20 ms, by engines of speed 0.6 to 1.5.
  BOOST_TEST(load.ttft_s.p50 > 0.03);
  BOOST_TEST(load.ttft_s.p50 < 0.3);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_world) {
  Scenario scenario = plain(20s);
  const auto run = [&] {
    World world(scenario);
    const auto report = world.run();
    std::string text = fmt::format("{} {} ", report.events, report.messages);
    for (const SampleRow& row : report.samples)
      for (const EngineSample& e : row.engines) text += fmt::format("{} {};", e.served, e.running);
    return text;
  };
  const std::string once = run();
  BOOST_TEST(run() == once);
  scenario.seed = 2;
  BOOST_TEST(run() != once);
}

BOOST_AUTO_TEST_CASE(a_dying_engine_costs_only_what_had_a_byte) {
  Scenario scenario = plain(60s);
  scenario.happenings = {happening(20s, HappeningKind::down, "w1", 1),
                         happening(40s, HappeningKind::down, "w1", 0)};
  World world(scenario);
  const auto report = world.run();
  BOOST_REQUIRE_EQUAL(report.phases.size(), 3u);
  std::size_t broken = 0;
  for (const Phase& phase : report.phases)
    for (std::size_t end = 0; end < phase.loads[0].failed.size(); ++end) {
      const auto kind = static_cast<schema::AttemptEnd>(end);
      if (kind == schema::AttemptEnd::broken_stream)
        broken += phase.loads[0].failed[end];
      else
        BOOST_TEST(phase.loads[0].failed[end] == 0u, name_of(kind));
    }
  BOOST_TEST(broken > 0u);
  const auto served = [&](double from, double until) {
    double share = 0;
    for (const SampleRow& row : report.samples) {
      const double at = to_seconds(row.at.time_since_epoch());
      if (at > from && at <= until) share += row.engines[3].served;
    }
    return share / (until - from);
  };
  BOOST_TEST(served(10, 20) > 0.3);
  BOOST_TEST(served(30, 40) < 0.1);  // probes only
  BOOST_TEST(served(50, 60) > 0.2);
}

BOOST_AUTO_TEST_CASE(a_role_that_the_world_does_not_know_is_left_out_and_told) {
  Scenario scenario = plain();
  scenario.config.processes.front().role = "auditor";
  World world(scenario);
  const auto report = world.run();
  BOOST_REQUIRE(!report.warnings.empty());
  BOOST_TEST(report.warnings.front().find("no role auditor") != std::string::npos);
}
