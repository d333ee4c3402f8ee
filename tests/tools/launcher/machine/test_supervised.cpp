#include <boost/test/unit_test.hpp>

#include "tools/launcher/machine/supervised.hpp"

using namespace signalbox;
using launcher::ChildState;
using launcher::RestartRule;
using launcher::Supervised;

namespace {

constexpr Instant at(Duration d) { return instant_at(d); }

/// Starts it when it is due, lets it live, ends it; returns how long it had to wait before that start.
Duration live(Supervised& child, Instant& now, Duration life) {
  BOOST_REQUIRE(child.due());
  const Duration waited = *child.due() - now;
  now = *child.due();
  child.on_started(now);
  now += life;
  child.on_ended(now);
  return waited;
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_started_at_once_and_counts_its_uptime) {
  Supervised child;
  BOOST_CHECK(!child.due());
  child.want(at(1s));
  BOOST_REQUIRE(child.due());
  BOOST_CHECK(*child.due() == at(1s));
  child.on_started(at(1s));
  BOOST_CHECK(child.state() == ChildState::running);
  BOOST_CHECK(!child.due());
  BOOST_CHECK(child.uptime(at(3s)) == 2s);
  BOOST_CHECK_EQUAL(child.restarts(), 0u);
}

BOOST_AUTO_TEST_CASE(early_deaths_wait_twice_as_long_each_time_and_end_in_a_crash_loop) {
  Supervised child;
  Instant now = at(0s);
  child.want(now);
  const Duration expected[] = {0ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms};
  for (const Duration wait : expected) BOOST_CHECK(live(child, now, 10ms) == wait);
  BOOST_CHECK(child.state() == ChildState::crash_loop);
  BOOST_CHECK_EQUAL(child.restarts(), 7u);
  for (int i = 0; i < 3; ++i) {
    BOOST_CHECK(live(child, now, 10ms) == 60s);
    BOOST_CHECK(child.state() == ChildState::crash_loop);
  }
  BOOST_CHECK(live(child, now, 6s) == 60s);
  BOOST_CHECK(child.state() == ChildState::backing_off);  // what killed it was mended
  BOOST_CHECK(*child.due() - now == 100ms);
  child.restart(now);
  BOOST_CHECK(child.due() == now);
  BOOST_CHECK(live(child, now, 10ms) == 0s);
  BOOST_CHECK(live(child, now, 10ms) == 100ms);
}

BOOST_AUTO_TEST_CASE(a_long_life_forgives) {
  Supervised child;
  Instant now = at(0s);
  child.want(now);
  for (int i = 0; i < 100; ++i) {
    live(child, now, 6s);
    BOOST_CHECK(child.state() == ChildState::backing_off);
    BOOST_CHECK(*child.due() - now == 100ms);
  }
}

BOOST_AUTO_TEST_CASE(a_start_that_fails_counts_as_an_early_death) {
  Supervised child({100ms, 10s, 5s, 2});
  child.want(at(0s));
  child.on_ended(at(0s));
  BOOST_CHECK(child.state() == ChildState::backing_off);
  child.on_ended(at(1s));
  BOOST_CHECK(child.state() == ChildState::crash_loop);
}

BOOST_AUTO_TEST_CASE(a_wished_restart_is_no_death) {
  Supervised child;
  child.want(at(0s));
  child.on_started(at(0s));
  child.restart(at(1s));
  BOOST_CHECK(child.state() == ChildState::stopping);
  child.on_ended(at(2s));
  BOOST_REQUIRE(child.due());
  BOOST_CHECK(*child.due() == at(2s));
  child.on_started(at(2s));
  child.on_ended(at(3s));
  BOOST_CHECK(*child.due() - at(3s) == 100ms);
}

BOOST_AUTO_TEST_CASE(one_that_has_spoken_and_falls_silent_hangs) {
  RestartRule rule;
  rule.silence = 10s;
  Supervised child(rule);
  child.want(at(0s));
  child.on_started(at(0s));
  BOOST_CHECK(!child.hangs(at(100s)));  // not all that can be started can speak
  child.on_alive(at(100s));
  BOOST_CHECK(!child.hangs(at(110s)));
  BOOST_CHECK(child.hangs(at(111s)));
  child.forgive(5s);  // the launcher slept
  BOOST_CHECK(!child.hangs(at(111s)));
  BOOST_CHECK(child.hangs(at(116s)));
  child.on_ended(at(116s));
  BOOST_CHECK(!child.hangs(at(130s)));
  child.on_started(at(116s));
  BOOST_CHECK(!child.hangs(at(130s)));  // its last life's words are forgotten
}

BOOST_AUTO_TEST_CASE(what_is_not_wanted_stays_down) {
  Supervised child;
  child.want(at(0s));
  child.on_started(at(0s));
  child.unwant();
  BOOST_CHECK(child.state() == ChildState::stopping);
  child.on_ended(at(1s));
  BOOST_CHECK(child.state() == ChildState::idle);
  BOOST_CHECK(!child.due());
}
