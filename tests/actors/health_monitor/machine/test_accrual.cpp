#include <boost/test/unit_test.hpp>

#include "actors/health_monitor/machine/accrual.hpp"
#include "actors/health_monitor/machine/probes.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::health_monitor;

namespace {

constexpr double suspicious = 3;

/// One who speaks `count` times, each `interval` after the last, give or take up to `jitter` of it; the time of the last.
Instant speak(Accrual& accrual, Instant from, int count, double interval_s, double jitter, Rng& rng) {
  for (int i = 0; i < count; ++i) {
    from += from_seconds(interval_s * (1 + jitter * rng.uniform(-1, 1)));
    accrual.heard(from);
  }
  return from;
}

/// The silence after which he is suspected.
double patience_s(const Accrual& accrual, Instant last) {
  double low = 0, high = 1000;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (accrual.phi(last + from_seconds(middle)) < suspicious ? low : high) = middle;
  }
  return low;
}

}  // namespace

BOOST_AUTO_TEST_CASE(suspicion_never_falls_while_silence_lasts) {
  Rng rng(1);
  for (int round = 0; round < 50; ++round) {
    Accrual accrual(instant_at(0s));
    const Instant last = speak(accrual, instant_at(0s), static_cast<int>(rng.below(40)), rng.uniform(0.01, 2),
                               rng.uniform(0, 1), rng);
    double before = accrual.phi(last);
    BOOST_TEST(before >= 0);
    for (Instant now = last; now < last + 30s; now += from_seconds(rng.uniform(0, 0.5))) {
      BOOST_TEST(accrual.phi(now) >= before);
      before = accrual.phi(now);
    }
    BOOST_TEST(before > suspicious, "thirty seconds are long for anybody here");
  }
}

BOOST_AUTO_TEST_CASE(the_punctual_are_suspected_soon_and_the_unpunctual_late) {
  Rng rng(2);
  Accrual punctual(instant_at(0s)), slow(instant_at(0s));
  const Instant a = speak(punctual, instant_at(0s), 50, 0.25, 0.05, rng);
  const Instant b = speak(slow, instant_at(0s), 50, 2.0, 0.05, rng);
  BOOST_TEST(patience_s(punctual, a) < 1.0);
  BOOST_TEST(patience_s(punctual, a) > 0.5);
  BOOST_TEST(patience_s(slow, b) > 4.0);
}

BOOST_AUTO_TEST_CASE(jitter_five_times_as_large_is_learnt_and_no_cause_for_suspicion) {
  Rng rng(3);
  Accrual accrual(instant_at(0s));
  Instant last = speak(accrual, instant_at(0s), 100, 0.25, 0.1, rng);
  const double before = patience_s(accrual, last);
  int suspected = 0;
  for (int i = 0; i < 500; ++i) {  // now each word comes after 0.12 to 0.62 s instead of 0.22 to 0.27
    const Instant next =
        last + from_seconds(0.25 * (1 + 0.5 * rng.uniform(-1, 1)) + 0.25 * rng.uniform(0, 1));
    if (accrual.phi(next) >= suspicious) ++suspected;
    accrual.heard(last = next);
  }
  BOOST_TEST(suspected == 0);
  BOOST_TEST(patience_s(accrual, last) > 1.3 * before);
}

BOOST_AUTO_TEST_CASE(our_own_lateness_is_nobodys_silence) {
  Rng rng(4);
  Accrual accrual(instant_at(0s)), same(instant_at(0s));
  const Instant last = speak(accrual, instant_at(0s), 30, 0.25, 0, rng);
  speak(same, instant_at(0s), 30, 0.25, 0, rng);
  accrual.forgive(20s);
  BOOST_TEST(accrual.phi(last + 20s + 300ms) == same.phi(last + 300ms), boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(probes_are_seldom_in_peace_and_frequent_in_doubt) {
  Probes probes(5s, instant_at(0s));
  std::uint64_t number = 0;
  const auto count = [&](bool doubted, Instant from, Duration length) {
    int asked = 0;
    for (Instant now = from; now < from + length; now += 100ms)
      if (const auto kind = probes.due(doubted, false, now)) {
        probes.started(*kind, ++number, now);
        probes.took({number, ProbeFault::none, 200}, now);
        ++asked;
      }
    return asked;
  };
  BOOST_TEST(count(false, instant_at(0s), 20s) == 4);
  BOOST_TEST(count(true, instant_at(20s), 3s) >= 8);
}

BOOST_AUTO_TEST_CASE(an_answer_counts_for_a_moment_and_a_failure_at_once) {
  Probes probes(5s, instant_at(0s));
  probes.started(ProbeKind::health, 1, instant_at(0s));
  BOOST_TEST(!probes.took({9, ProbeFault::none, 200}, instant_at(0s)), "an answer to nobody's question");
  BOOST_TEST(probes.took({1, ProbeFault::none, 404}, instant_at(0s)));
  BOOST_TEST(probes.eye(instant_at(1s)).answers);
  BOOST_TEST(!probes.eye(instant_at(3s)).answers);
  probes.started(ProbeKind::health, 2, instant_at(3s));
  probes.took({2, ProbeFault::unreachable, 0}, instant_at(3s));
  BOOST_TEST(probes.eye(instant_at(3s)).unreachable == 1u);
  probes.started(ProbeKind::health, 3, instant_at(4s));
  BOOST_TEST(!probes.due(true, false, instant_at(5s)), "one at a time");
  probes.due(true, false, instant_at(7s));
  BOOST_TEST(probes.eye(instant_at(7s)).failed == 2u, "an answer that never comes is one that came too late");
}

BOOST_AUTO_TEST_CASE(an_idle_engine_is_asked_for_a_token) {
  Probes probes(5s, instant_at(0s));
  probes.started(ProbeKind::health, 1, instant_at(0s));
  probes.took({1, ProbeFault::none, 200}, instant_at(0s));
  BOOST_TEST(!probes.due(false, false, instant_at(1s)));
  BOOST_TEST((probes.due(false, true, instant_at(1s)) == ProbeKind::generate));
  probes.started(ProbeKind::generate, 2, instant_at(1s));
  probes.took({2, ProbeFault::timed_out, 0}, instant_at(3s));
  BOOST_TEST(probes.eye(instant_at(3s)).barren == 1u);
  probes.started(ProbeKind::generate, 3, instant_at(7s));
  probes.took({3, ProbeFault::none, 401}, instant_at(7s));
  BOOST_TEST(probes.eye(instant_at(7s)).barren == 0u, "one that wants a key is not judged so");
  probes.started(ProbeKind::health, 4, instant_at(60s));
  probes.took({4, ProbeFault::none, 200}, instant_at(60s));
  BOOST_TEST(!probes.due(false, true, instant_at(61s)), "and is left alone for long");
}
