#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "messages/base/rng.hpp"
#include "tests/actors/health_monitor/machine/driver.hpp"

using namespace signalbox;
using namespace signalbox::health_monitor;
using testing::driver;

BOOST_AUTO_TEST_CASE(an_engine_falls_comes_back_and_is_ramped) {
  tests::check_transcript("health_monitor", driver());
}

BOOST_AUTO_TEST_CASE(caps_drains_and_isolation_stand_over_findings) {
  tests::check_transcript("health_monitor_rules", driver());
}

namespace {

/// Random signals, silences and reports; returns the machine's text and checks the cap after each look.
std::string storm(std::uint64_t seed) {
  const auto d = driver();
  tests::PlainHost<Machine> host(d, instant_at(0s));
  Rng rng(seed);
  Instant now = instant_at(0s);
  std::string text;
  for (int i = 0; i < 400; ++i) {
    now += from_seconds(rng.exponential(0.3));
    host.advance(now);
    schema::Delivery delivery;
    delivery.envelope.source = ProcessName("proxy-1");
    if (rng.chance(0.8)) {
      schema::EngineSignal signal;
      signal.cluster = ClusterName("east");
      signal.engine = EngineName(fmt::format("e{}", 1 + rng.below(4)));
      signal.incarnation = {1 + rng.below(20) / 19, 0};
      signal.scrape = rng.chance(0.5) ? schema::ScrapeState::ok : schema::ScrapeState::timed_out;
      signal.failed_readings = signal.scrape == schema::ScrapeState::ok ? 0 : rng.below(6);
      signal.slowness = rng.uniform(0.5, 5);
      delivery.message = signal;
    } else if (rng.chance(0.5)) {
      delivery.message = schema::Beat{};
    } else {
      schema::OutcomeReport report;
      report.table = testing::table().content;
      schema::OutcomeRow row;
      row.engine = EngineIndex(rng.below(4));
      row.succeeded = rng.below(5);
      row.timeouts = rng.below(10);
      report.engines = {row};
      delivery.message = report;
    }
    host.tell(delivery);
    std::size_t out = 0;
    for (const auto& e : host.machine().view().engines) {
      const bool taken = e.state == HealthState::suspect || e.state == HealthState::gone;
      out += taken && e.engine.str() != "e4" ? 1 : 0;
      if (taken) BOOST_TEST(e.capacity_factor == 0);
      BOOST_TEST((e.capacity_factor >= 0 && e.capacity_factor <= 1));
    }
    BOOST_TEST(out <= 1u, "30 % of three engines is at most one, but " << out << " are out");
    text += host.take_text();
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_storm_of_soft_evidence_passes_the_cap) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) storm(seed);
}

BOOST_AUTO_TEST_CASE(the_same_story_gives_the_same_words) { BOOST_TEST(storm(7) == storm(7)); }

namespace {

schema::Delivery said(const char* source, schema::Message message) {
  schema::Delivery out;
  out.envelope.source = ProcessName(source);
  out.message = std::move(message);
  return out;
}

/// Everybody's signals and another process's beats, until then; but for the signals of one engine, if it is given.
void hear_until(tests::PlainHost<Machine>& host, Instant end, std::string_view silent = "") {
  while (host.now() + 250ms <= end) {
    host.advance(host.now() + 250ms);
    host.tell(said("proxy-1", schema::Beat{}));
    for (const char* name : {"e1", "e2", "e3", "e4"}) {
      schema::EngineSignal signal;
      signal.cluster = ClusterName("east");
      signal.engine = EngineName(name);
      signal.incarnation = {1, 0};
      if (name != silent) host.tell(said("proxy-1", signal));
    }
  }
}

std::size_t accused(const Machine& machine) {
  const View view = machine.view();
  return static_cast<std::size_t>(std::ranges::count_if(view.engines, [](const EngineView& e) {
    return e.state == HealthState::suspect || e.state == HealthState::gone;
  }));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_monitor_that_hears_nobody_accuses_nobody) {
  auto d = driver();
  for (const Duration cut : {1s, 2s, 4s, 30s}) {
    d.make = [] { return Machine({ProcessName("monitor-1"), testing::table(), 60s, 100ms, 0s, 750ms}); };
    tests::PlainHost<Machine> host(d, instant_at(0s));
    hear_until(host, instant_at(20s));
    for (Instant at = host.now(); host.now() < at + cut;) {
      host.advance(host.now() + 100ms);
      BOOST_TEST_REQUIRE(accused(host.machine()) == 0u, "after " << to_seconds(host.now() - at) << " s");
    }
    const bool isolated = cut > policy::CompiledPolicy{}.stale.signal_hard;
    BOOST_TEST(host.machine().view().isolated == isolated);
    // The first word that it hears again is a beat, and no engine's.
    host.tell(said("proxy-1", schema::Beat{}));
    host.advance(host.now() + 100ms);
    BOOST_TEST(accused(host.machine()) == 0u);
    hear_until(host, host.now() + 5s);
    BOOST_TEST(accused(host.machine()) == 0u);
    BOOST_TEST(!host.machine().view().isolated);
    // One that is silent while the others are not is noticed as ever.
    hear_until(host, host.now() + 10s, "e4");
    BOOST_TEST(accused(host.machine()) == 1u);
  }
}
