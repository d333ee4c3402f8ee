#include <boost/test/unit_test.hpp>

#include "actors/health_monitor/machine/judge.hpp"

using namespace signalbox;
using namespace signalbox::health_monitor;
using schema::ScrapeState;
using Why = schema::Evidence;

namespace {

struct Case {
  const char* name;
  ScrapeState scrape;
  std::uint64_t failed_readings;
  double silence_s, stuck_s, succeeded, unreached, failed, slowness;
  bool proxy_lives, drained;
  HealthState state;
  Why evidence;
};

const Case cases[] = {
    {"fresh and idle", ScrapeState::ok, 0, 0.2, 0, 0, 0, 0, 1, true, false, HealthState::ready,
     Why::signals_fresh},
    {"one failed reading is nothing", ScrapeState::timed_out, 1, 0.2, 0, 0, 0, 0, 1, true, false,
     HealthState::ready, Why::signals_fresh},
    {"two make it suspect", ScrapeState::unreachable, 2, 0.2, 0, 0, 0, 0, 1, true, false,
     HealthState::suspect, Why::engine_unreachable},
    {"three and it is gone", ScrapeState::unreachable, 3, 0.2, 0, 0, 0, 0, 1, true, false, HealthState::gone,
     Why::engine_unreachable},
    {"busy is not dead", ScrapeState::timed_out, 9, 0.2, 0, 4, 0, 0, 1, true, false, HealthState::degraded,
     Why::engine_unreachable},
    {"answers 503 while it loads", ScrapeState::refused, 3, 0.2, 0, 0, 0, 0, 1, true, false,
     HealthState::gone, Why::engine_errors},
    {"a page that cannot be read is no death", ScrapeState::malformed, 9, 0.2, 0, 0, 0, 0, 1, true, false,
     HealthState::ready, Why::signals_fresh},
    {"late", ScrapeState::ok, 0, 2, 0, 0, 0, 0, 1, true, false, HealthState::degraded, Why::signals_late},
    {"silent", ScrapeState::ok, 0, 6, 0, 0, 0, 0, 1, true, false, HealthState::suspect, Why::signals_late},
    {"silent, but it serves", ScrapeState::ok, 0, 6, 0, 3, 0, 0, 1, true, false, HealthState::degraded,
     Why::signals_late},
    {"its proxy died, not it", ScrapeState::ok, 0, 60, 0, 0, 0, 0, 1, false, false, HealthState::degraded,
     Why::signals_late},
    {"no token moves", ScrapeState::ok, 0, 0.2, 6, 0, 0, 0, 1, true, false, HealthState::suspect,
     Why::no_progress},
    {"no token moves for long", ScrapeState::ok, 0, 0.2, 16, 0, 0, 0, 1, true, false, HealthState::gone,
     Why::no_progress},
    {"a fifth of the attempts fails", ScrapeState::ok, 0, 0.2, 0, 12, 0, 4, 1, true, false,
     HealthState::degraded, Why::requests_failing},
    {"nearly all attempts fail", ScrapeState::ok, 0, 0.2, 0, 1, 0, 9, 1, true, false, HealthState::suspect,
     Why::requests_failing},
    {"two failures prove nothing", ScrapeState::ok, 0, 0.2, 0, 0, 0, 2, 1, true, false, HealthState::ready,
     Why::signals_fresh},
    {"slow", ScrapeState::ok, 0, 0.2, 0, 9, 0, 0, 4, true, false, HealthState::degraded, Why::slow},
    {"an order outranks all evidence", ScrapeState::unreachable, 9, 9, 9, 0, 9, 9, 9, true, true,
     HealthState::draining, Why::ordered},
};

Finding judge_case(const Case& c) {
  schema::EngineSignal signal;
  signal.scrape = c.scrape;
  signal.failed_readings = c.failed_readings;
  signal.slowness = c.slowness;
  Evidence evidence;
  evidence.signal = &signal;
  evidence.silence = from_seconds(c.silence_s);
  evidence.suspicion = c.silence_s / 0.25;
  evidence.vouched = c.succeeded > 0 && c.failed == 0;
  evidence.stuck = from_seconds(c.stuck_s);
  evidence.succeeded = c.succeeded, evidence.unreached = c.unreached, evidence.failed = c.failed;
  evidence.proxy_lives = c.proxy_lives, evidence.drain_ordered = c.drained;
  return judge(evidence, policy::Stale{});
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_finding_has_its_evidence) {
  for (const Case& c : cases) {
    const Finding finding = judge_case(c);
    BOOST_TEST(name_of(finding.state) == name_of(c.state), c.name << ": " << finding.detail);
    BOOST_TEST(name_of(finding.evidence) == name_of(c.evidence), c.name << ": " << finding.detail);
    BOOST_TEST(!finding.detail.empty(), c.name);
  }
}

BOOST_AUTO_TEST_CASE(two_who_look_for_themselves_confirm) {
  Case c = cases[3];
  BOOST_TEST(!judge_case(c).confirmed);
  c.unreached = 1;
  BOOST_TEST(judge_case(c).confirmed);
  c.succeeded = 2;
  BOOST_TEST(!judge_case(c).confirmed);
}

BOOST_AUTO_TEST_CASE(the_monitors_own_eye_counts_beside_the_proxys) {
  schema::EngineSignal signal;
  signal.scrape = ScrapeState::unreachable;
  signal.failed_readings = 3;
  Evidence evidence;
  evidence.signal = &signal;
  evidence.eye.unreachable = 2;
  BOOST_TEST(judge(evidence, {}).confirmed);
  BOOST_TEST((judge(evidence, {}).state == HealthState::gone));
  evidence.eye = {true, 0, 0, 0};
  BOOST_TEST(!judge(evidence, {}).confirmed);
  BOOST_TEST((judge(evidence, {}).state == HealthState::degraded), "its proxy is what cannot reach it");

  signal = {};
  evidence.eye = {false, 0, 3, 0};
  BOOST_TEST((judge(evidence, {}).evidence == Why::engine_unreachable));
  BOOST_TEST((judge(evidence, {}).state == HealthState::degraded), "the proxy still reads it");
  evidence.eye = {true, 0, 0, 2};
  BOOST_TEST((judge(evidence, {}).state == HealthState::suspect), "it answers, but makes no token");
  evidence.vouched = true;
  BOOST_TEST((judge(evidence, {}).state == HealthState::ready));

  evidence = {};
  evidence.signal = &signal;
  evidence.silence = 9s, evidence.suspicion = 9, evidence.proxy_lives = false;
  BOOST_TEST((judge(evidence, {}).state == HealthState::degraded));
  evidence.eye.unreachable = 2;
  BOOST_TEST((judge(evidence, {}).state == HealthState::suspect), "its proxy is dead, and so is it");
}

BOOST_AUTO_TEST_CASE(outcomes_fade) {
  Outcomes outcomes;
  schema::OutcomeRow row;
  row.connect_errors = 2, row.resets = 1, row.timeouts = 1, row.succeeded = 8;
  outcomes.hear(row, instant_at(0s));
  BOOST_TEST(outcomes.unreached(instant_at(0s)) == 3);
  BOOST_TEST(outcomes.failed(instant_at(0s)) == 4);
  BOOST_TEST(outcomes.succeeded(instant_at(3s)) == 8 / 2.718281828459045, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(outcomes.failed(instant_at(60s)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(a_success_vouches_until_it_is_old_or_only_failures_follow) {
  Outcomes outcomes;
  schema::OutcomeRow good, bad;
  good.succeeded = 1, bad.timeouts = 1;
  outcomes.hear(good, instant_at(10s));
  BOOST_TEST(outcomes.vouch(instant_at(11s)));
  BOOST_TEST(!outcomes.vouch(instant_at(13s)));
  outcomes.hear(good, instant_at(20s));
  outcomes.hear(bad, instant_at(20s));
  BOOST_TEST(!outcomes.vouch(instant_at(20s)));
}
