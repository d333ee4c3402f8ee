// The second attempt of a request whose first one is late: when there is one, and what it costs.
#include <boost/test/unit_test.hpp>
#include <map>

#include "actors/cluster_router/routing/class_means.hpp"
#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

using schema::AttemptEnd;

namespace {

struct Hedging {
  explicit Hedging(std::uint32_t tokens = 4096) {
    fleet.engines(3).request_class("t", Criticality::standard);
    fleet.policy.retry.hedge_tokens = tokens;
    fleet.policy.retry.hedge_least = 50ms;
    dispatcher.adopt(fleet.view(), at(0));
  }
  RequestFacts ask(std::uint64_t prompt_bytes = 400) {
    RequestFacts facts = request("t", prompt_bytes);
    facts.stream = true;
    facts.max_output_tokens = 100;
    return facts;
  }
  /// Requests whose first byte comes after `first_byte_s`.
  void serve(int count, double first_byte_s) {
    for (int i = 0; i < count; ++i, now += 1) {
      const Begun begun = dispatcher.begin(ask(), at(now));
      dispatcher.head(begun.ticket, 200, {}, at(now));
      dispatcher.first_byte(begun.ticket, at(now + first_byte_s));
      dispatcher.finished(begun.ticket, AttemptEnd::succeeded, {100, 0, 10}, at(now + first_byte_s));
    }
  }
  Duration delay(RequestFacts facts) {
    const Begun begun = dispatcher.begin(std::move(facts), at(now));
    const Duration out = std::get<Forward>(begun.verdict).hedge;
    dispatcher.client_left(begun.ticket, at(now));
    return out;
  }
  /// Engines with something in flight, and the counts of this period.
  std::map<std::uint32_t, schema::OutcomeRow> outcomes() {
    std::map<std::uint32_t, schema::OutcomeRow> out;
    for (const auto& row : dispatcher.drain(at(now)).outcomes) out[row.engine.value] = row;
    return out;
  }

  Fleet fleet;
  Dispatcher dispatcher{options()};
  double now = 1;
};

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_is_hedged_unless_the_policy_says_so) {
  Hedging h(0);
  h.serve(100, 0.2);
  BOOST_TEST((h.delay(h.ask()) == Duration::zero()));
  const Begun begun = h.dispatcher.begin(h.ask(), at(h.now));
  BOOST_TEST(!h.dispatcher.hedge(begun.ticket, at(h.now + 10)).has_value());
  h.dispatcher.client_left(begun.ticket, at(h.now));
}

BOOST_AUTO_TEST_CASE(a_short_request_is_late_when_it_passes_its_classs_quantile) {
  Hedging h;
  h.serve(19, 0.2);
  BOOST_TEST((h.delay(h.ask()) == Duration::zero()));  // nothing is known yet
  h.serve(60, 0.2);
  BOOST_TEST(to_seconds(h.delay(h.ask())) == 0.2, boost::test_tools::tolerance(0.2));
  BOOST_TEST((h.delay(h.ask(40'000)) == Duration::zero()));  // a long one
  RequestFacts stateful = h.ask();
  stateful.stateful = true;
  BOOST_TEST((h.delay(std::move(stateful)) == Duration::zero()));
  RequestFacts pinned = h.ask();
  pinned.pinned_engine = "e1";
  BOOST_TEST((h.delay(std::move(pinned)) == Duration::zero()));
  h.serve(600, 0.001);
  BOOST_TEST((h.delay(h.ask()) == 50ms));  // never sooner than the policy says
}

BOOST_AUTO_TEST_CASE(a_tail_is_followed_and_a_hedged_request_counts_as_above_it) {
  for (const double q : {0.5, 0.9, 0.95, 0.99}) {
    Rng rng(4);
    TailTime tail;
    int above = 0, seen = 0;
    for (int i = 0; i < 40'000; ++i) {
      const double took = rng.exponential(0.3);
      const auto value = tail.value_s();
      if (value && i > 1'000) ++seen, above += took > *value ? 1 : 0;
      // What passes the quantile is not waited for.
      value&& took > *value ? tail.above(q) : tail.add(took, q);
    }
    BOOST_TEST(static_cast<double>(above) / seen == 1 - q, boost::test_tools::tolerance(0.1));
  }
}

BOOST_AUTO_TEST_CASE(either_of_two_attempts_may_win_and_the_other_is_counted_once_and_blamed_for_nothing) {
  for (const bool second_wins : {true, false}) {
    Hedging h;
    h.serve(30, 0.2);
    h.outcomes();
    const Begun begun = h.dispatcher.begin(h.ask(), at(h.now));
    const Forward first = std::get<Forward>(begun.verdict);
    BOOST_REQUIRE((first.hedge > Duration::zero()));
    h.now += 1;
    const auto second = h.dispatcher.hedge(begun.ticket, at(h.now));
    BOOST_REQUIRE(second.has_value());
    BOOST_TEST((second->engine != first.engine));
    BOOST_TEST(second->attempt == 2u);
    BOOST_TEST(!h.dispatcher.hedge(begun.ticket, at(h.now)).has_value());  // no third one
    auto open = h.outcomes();
    BOOST_TEST(open[first.engine.value].inflight == 1.0);
    BOOST_TEST(open[second->engine.value].inflight == 1.0);

    const Forward &winner = second_wins ? *second : first, &loser = second_wins ? first : *second;
    h.dispatcher.hedge_over(begun.ticket, loser.attempt, AttemptEnd::superseded, 0, at(h.now));
    BOOST_TEST(!h.dispatcher.head(begun.ticket, 200, {}, at(h.now)).has_value());
    h.dispatcher.first_byte(begun.ticket, at(h.now));
    h.dispatcher.finished(begun.ticket, AttemptEnd::succeeded, {100, 0, 10}, at(h.now + 1));
    auto ended = h.outcomes();
    BOOST_TEST(ended[winner.engine.value].succeeded == 1u);
    BOOST_TEST(ended[loser.engine.value].cancelled == 1u);
    BOOST_TEST(ended[loser.engine.value].succeeded == 0u);
    for (const auto& [engine, row] : ended) {
      BOOST_TEST(row.inflight == 0.0);
      BOOST_TEST(row.inflight_kv_tokens == 0.0);
      BOOST_TEST(row.penalty == 1.0);
    }
    const auto record = h.dispatcher.record(begun.decision, at(h.now));
    BOOST_REQUIRE(record.has_value());
    BOOST_REQUIRE(record->attempts.size() == 2u);
    BOOST_TEST((record->engine == winner.engine));
    BOOST_TEST((record->attempts[loser.attempt - 1].end == AttemptEnd::superseded));
    BOOST_TEST((record->attempts[winner.attempt - 1].end == AttemptEnd::succeeded));
    BOOST_TEST(h.dispatcher.open() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_attempt_that_fails_beside_another_is_held_against_its_engine) {
  Hedging h;
  h.serve(30, 0.2);
  const Begun begun = h.dispatcher.begin(h.ask(), at(h.now));
  const EngineIndex first = std::get<Forward>(begun.verdict).engine;
  const auto second = h.dispatcher.hedge(begun.ticket, at(h.now + 1));
  BOOST_REQUIRE(second.has_value());
  h.dispatcher.hedge_over(begun.ticket, 1, AttemptEnd::reset_before_head, 0, at(h.now + 1));
  h.now += 1;
  auto rows = h.outcomes();
  BOOST_TEST(rows[first.value].penalty < 0.5);
  BOOST_TEST(rows[first.value].resets == 1u);
  BOOST_TEST(rows[second->engine.value].penalty == 1.0);
  // Both attempts that the policy allows are used: what fails now is told.
  const Verdict verdict = h.dispatcher.failed(begun.ticket, AttemptEnd::reset_before_head, at(h.now));
  BOOST_TEST(std::holds_alternative<Refuse>(verdict));
  BOOST_TEST(h.dispatcher.open() == 0u);
}

BOOST_AUTO_TEST_CASE(hedges_take_from_the_budget_of_retries) {
  Hedging h;
  h.fleet.policy.retry.budget_ratio = 0.1;
  h.fleet.policy.retry.budget_burst = 5;
  h.fleet.policy.hash = digest_of("another");
  h.dispatcher.adopt(h.fleet.view(), at(0));
  h.serve(30, 0.2);
  int hedged = 0;
  for (int i = 0; i < 100; ++i) {
    const Begun begun = h.dispatcher.begin(h.ask(), at(h.now));
    hedged += h.dispatcher.hedge(begun.ticket, at(h.now + 1)) ? 1 : 0;
    h.dispatcher.client_left(begun.ticket, at(h.now + 1));
  }
  BOOST_TEST(hedged >= 10);
  BOOST_TEST(hedged <= 5 + 0.1 * 130 + 1);
}

}  // namespace signalbox::routing::test
