// The way of requests through a dispatcher: forwarded, retried, waiting, refused, left.
#include <boost/test/unit_test.hpp>

#include "messages/schema/visit.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

using schema::AttemptEnd;
using schema::RefuseReason;

namespace {

/// One class "t" on n engines.
struct Simple : Fleet {
  explicit Simple(std::size_t n) { engines(n), request_class("t", Criticality::standard); }
  Dispatcher start(DispatcherOptions o = options()) {
    Dispatcher d(std::move(o));
    d.adopt(view(), at(0));
    return d;
  }
};

std::uint64_t in_flight(Dispatcher& d, double now) {
  double sum = 0;
  for (const auto& row : d.drain(at(now)).outcomes) sum += row.inflight;
  return static_cast<std::uint64_t>(sum);
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_view_everything_is_refused_as_not_ready) {
  Dispatcher d(options());
  const Begun begun = d.begin(request("t"), at(1));
  const auto& refusal = as<Refuse>(begun.verdict);
  BOOST_TEST(static_cast<int>(refusal.reason) == static_cast<int>(RefuseReason::no_snapshot));
  BOOST_TEST(refusal.status == 503);
  BOOST_TEST((refusal.retry_after > Duration::zero()));
  BOOST_TEST(d.open() == 0u);
}

BOOST_AUTO_TEST_CASE(a_request_that_succeeds_is_counted_once_everywhere) {
  Simple fleet(2);
  Dispatcher d = fleet.start();
  const Begun begun = d.begin(request("t"), at(1));
  const auto& forward = as<Forward>(begun.verdict);
  BOOST_TEST(forward.attempt == 1u);
  BOOST_TEST((forward.total == fleet.policy.timeouts.total));
  BOOST_TEST(!d.head(begun.ticket, 200, {}, at(1.5)).has_value());
  d.first_byte(begun.ticket, at(2));
  d.finished(begun.ticket, AttemptEnd::succeeded, {1000, 200, 50}, at(3));
  BOOST_TEST(d.open() == 0u);

  const Batch batch = d.drain(at(4));
  BOOST_REQUIRE(batch.demand.size() == 1u);
  BOOST_TEST(batch.demand[0].offered == 1u);
  BOOST_TEST(batch.demand[0].admitted == 1u);
  BOOST_TEST(batch.demand[0].finished == 1u);
  BOOST_TEST(batch.demand[0].cached_tokens == 200u);
  BOOST_REQUIRE(batch.outcomes.size() == 1u);
  BOOST_TEST(batch.outcomes[0].succeeded == 1u);
  BOOST_TEST(batch.outcomes[0].inflight == 0.0);
  BOOST_TEST(batch.outcomes[0].first_byte_sum_s == 1.0, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(batch.outcomes[0].decode_sum_s == 1.0, boost::test_tools::tolerance(1e-9));
  BOOST_REQUIRE(batch.served.size() == 1u);
  BOOST_TEST(batch.served[0].latency_sum_s == 2.0, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_connect_error_is_retried_on_the_other_engine_and_then_given_up) {
  Simple fleet(2);
  Dispatcher d = fleet.start();
  const Begun begun = d.begin(request("t"), at(1));
  const EngineIndex first = as<Forward>(begun.verdict).engine;
  const Verdict again = d.failed(begun.ticket, AttemptEnd::connect_error, at(1.01));
  BOOST_TEST((as<Forward>(again).engine != first));
  BOOST_TEST(as<Forward>(again).attempt == 2u);
  const Verdict over = d.failed(begun.ticket, AttemptEnd::connect_error, at(1.02));
  BOOST_TEST(static_cast<int>(as<Refuse>(over).reason) == static_cast<int>(RefuseReason::retries_exhausted));
  BOOST_TEST(as<Refuse>(over).status == 503);
  BOOST_TEST(d.open() == 0u);
  BOOST_TEST(in_flight(d, 2) == 0u);
}

struct RetryRow {
  const char* name;
  AttemptEnd end;        ///< of an attempt without a head; open: an answer came
  std::uint16_t status;  ///< of the answer
  bool stateful;
  double when;  ///< seconds after arrival, deadline 10 s
  bool retried;
};

BOOST_AUTO_TEST_CASE(what_is_retried) {
  const RetryRow rows[] = {
      {"connect error", AttemptEnd::connect_error, 0, false, 0.1, true},
      {"reset before the head", AttemptEnd::reset_before_head, 0, false, 0.1, true},
      {"first byte timeout", AttemptEnd::first_byte_timeout, 0, false, 0.1, true},
      {"502", AttemptEnd::open, 502, false, 0.1, true},
      {"503", AttemptEnd::open, 503, false, 0.1, true},
      {"500 is not listed", AttemptEnd::open, 500, false, 0.1, false},
      {"400 is the client's", AttemptEnd::open, 400, false, 0.1, false},
      {"429 is handed on", AttemptEnd::open, 429, false, 0.1, false},
      {"stateful", AttemptEnd::connect_error, 0, true, 0.1, false},
      {"half of the deadline has passed", AttemptEnd::connect_error, 0, false, 5.1, false},
      {"half of the deadline has not quite passed", AttemptEnd::connect_error, 0, false, 4.9, true},
  };
  for (const RetryRow& row : rows) {
    BOOST_TEST_CONTEXT(row.name) {
      Simple fleet(3);
      Dispatcher d = fleet.start();
      RequestFacts facts = request("t");
      facts.stateful = row.stateful;
      facts.deadline = 10s;
      const Begun begun = d.begin(std::move(facts), at(1));
      const Instant when = at(1 + row.when);
      if (row.end == AttemptEnd::open) {
        const auto next = d.head(begun.ticket, row.status, {}, when);
        BOOST_TEST(next.has_value() == row.retried);
      } else {
        const Verdict next = d.failed(begun.ticket, row.end, when);
        BOOST_TEST(std::holds_alternative<Forward>(next) == row.retried);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_frees_its_place_in_every_phase) {
  for (int phase = 0; phase < 4; ++phase) {
    BOOST_TEST_CONTEXT("phase " << phase) {
      Simple fleet(1);
      fleet.policy.limits.in_flight_cap = 1;
      Dispatcher d = fleet.start();
      const Begun first = d.begin(request("t"), at(1));
      BOOST_TEST(std::holds_alternative<Forward>(first.verdict));
      const Begun second = d.begin(request("t"), at(1));
      BOOST_TEST(std::holds_alternative<Wait>(second.verdict));
      if (phase >= 1) d.head(first.ticket, 200, {}, at(1.1));
      if (phase >= 2) d.first_byte(first.ticket, at(1.2));
      if (phase == 3) {
        d.client_left(second.ticket, at(1.3));
        BOOST_TEST(d.waiting() == 0u);
        BOOST_TEST(!d.next_ready(at(1.3)).has_value());
      }
      d.client_left(first.ticket, at(1.4));
      const auto ready = d.next_ready(at(1.4));
      BOOST_TEST(ready.has_value() == (phase != 3));
      if (ready) d.client_left(ready->ticket, at(1.5));
      BOOST_TEST(d.open() == 0u);
      BOOST_TEST(in_flight(d, 2) == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_waiting_request_goes_when_a_place_is_free_and_is_refused_when_its_time_is_up) {
  Simple fleet(1);
  fleet.policy.limits.in_flight_cap = 1;
  Dispatcher d = fleet.start();
  const Begun first = d.begin(request("t"), at(1));
  const Begun second = d.begin(request("t"), at(1.1));
  const Begun third = d.begin(request("t"), at(1.2));
  BOOST_TEST((d.next_wake() == at(3.1)));
  BOOST_TEST(!d.next_ready(at(1.3)).has_value());
  d.finished(first.ticket, AttemptEnd::succeeded, {}, at(2));
  const auto ready = d.next_ready(at(2));
  BOOST_REQUIRE(ready.has_value());
  BOOST_TEST((ready->ticket == second.ticket));
  BOOST_TEST(std::holds_alternative<Forward>(ready->verdict));
  BOOST_TEST(!d.next_ready(at(2)).has_value());
  const auto late = d.next_ready(at(3.2));
  BOOST_REQUIRE(late.has_value());
  BOOST_TEST((late->ticket == third.ticket));
  BOOST_TEST(static_cast<int>(as<Refuse>(late->verdict).reason) ==
             static_cast<int>(RefuseReason::queue_timeout));
  BOOST_TEST(as<Refuse>(late->verdict).status == 429);
  d.client_left(second.ticket, at(4));
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason_and_status) {
  Simple fleet(2);
  fleet.verdict(EngineIndex(0), HealthState::gone);
  fleet.verdict(EngineIndex(1), HealthState::draining);
  Dispatcher d = fleet.start();
  const auto reason = [&](RequestFacts facts) {
    const Begun begun = d.begin(std::move(facts), at(1));
    const auto& refusal = as<Refuse>(begun.verdict);
    return std::pair(refusal.reason, refusal.status);
  };
  RequestFacts unknown_model = request("t");
  unknown_model.model = "no-such";
  RequestFacts in_a_hurry = request("t");
  in_a_hurry.deadline = Duration::zero();
  RequestFacts pinned = request("t");
  pinned.pinned_engine = "e9";
  BOOST_TEST((reason(unknown_model) == std::pair(RefuseReason::unknown_model, std::uint16_t{404})));
  BOOST_TEST((reason(request("stranger")) == std::pair(RefuseReason::policy_reject, std::uint16_t{403})));
  BOOST_TEST((reason(in_a_hurry) == std::pair(RefuseReason::deadline_passed, std::uint16_t{504})));
  BOOST_TEST((reason(request("t")) == std::pair(RefuseReason::no_engine, std::uint16_t{503})));
  BOOST_TEST((reason(pinned) == std::pair(RefuseReason::no_engine, std::uint16_t{503})));
  d.drain_and_refuse();
  BOOST_TEST((reason(request("t")) == std::pair(RefuseReason::draining, std::uint16_t{503})));
}

BOOST_AUTO_TEST_CASE(a_plan_that_admits_none_sheds_while_an_engine_lives_and_lacks_capacity_when_none_does) {
  Simple fleet(2);
  fleet.weights(ClassIndex(0), {0.5, 0.5});
  fleet.admit(ClassIndex(0), 0);
  fleet.verdict(EngineIndex(0), HealthState::gone);
  Dispatcher d = fleet.start();
  const auto shed = as<Refuse>(d.begin(request("t"), at(0.1)).verdict);
  BOOST_TEST((shed.reason == RefuseReason::shed_by_plan));
  BOOST_TEST(shed.status == 429);
  const Instant old = at(0.1) + fleet.policy.stale.snapshot_warn;  // what it refused for may be long over
  BOOST_TEST(std::holds_alternative<Forward>(d.begin(request("t"), old).verdict));

  fleet.verdict(EngineIndex(1), HealthState::gone);
  d.adopt(fleet.view(), old);
  const auto refused = as<Refuse>(d.begin(request("t"), old).verdict);
  BOOST_TEST((refused.reason == RefuseReason::no_engine));
  BOOST_TEST(refused.status == 503);
}

BOOST_AUTO_TEST_CASE(failures_that_only_the_budget_keeps_from_another_try_are_counted) {
  Simple fleet(5);
  fleet.policy.retry.budget_ratio = 0;
  fleet.policy.retry.budget_burst = 2;
  Dispatcher d = fleet.start();
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    const Begun begun = d.begin(request("t"), at(1));
    refused += std::holds_alternative<Refuse>(d.failed(begun.ticket, AttemptEnd::connect_error, at(1)));
  }
  BOOST_TEST(refused == 3);
  BOOST_TEST(d.drain(at(2)).retries_denied == 3u);
  BOOST_TEST(d.drain(at(3)).retries_denied == 0u);
}

BOOST_AUTO_TEST_CASE(a_pinned_request_goes_to_its_engine_even_while_that_is_drained_and_nowhere_else) {
  Simple fleet(5);
  fleet.verdict(EngineIndex(3), HealthState::draining);
  Dispatcher d = fleet.start();
  for (int i = 0; i < 20; ++i) {
    RequestFacts facts = request("t");
    facts.pinned_engine = "e3";
    facts.stateful = true;
    const Begun begun = d.begin(std::move(facts), at(1));
    BOOST_TEST(as<Forward>(begun.verdict).engine.value == 3u);
    const Verdict next = d.failed(begun.ticket, AttemptEnd::connect_error, at(1));
    BOOST_TEST(std::holds_alternative<Refuse>(next));
  }
}

BOOST_AUTO_TEST_CASE(a_session_stays_where_it_was_until_that_costs_twice_as_much) {
  Simple fleet(8);
  Dispatcher d = fleet.start();
  const auto ask = [&](double now) {
    RequestFacts facts = request("t");
    facts.session_hash = 42;
    return d.begin(std::move(facts), at(now));
  };
  const Begun first = ask(1);
  const EngineIndex home = as<Forward>(first.verdict).engine;
  d.finished(first.ticket, AttemptEnd::succeeded, {1000, 0, 256}, at(1.1));
  for (int i = 0; i < 30; ++i) {
    const Begun next = ask(2 + i);
    BOOST_TEST((as<Forward>(next.verdict).engine == home));
    d.finished(next.ticket, AttemptEnd::succeeded, {1000, 0, 256}, at(2.5 + i));
  }
  for (int i = 0; i < 40; ++i) ask(40);
  BOOST_TEST((as<Forward>(ask(41).verdict).engine != home));
}

BOOST_AUTO_TEST_CASE(in_flight_follows_engines_by_name_from_one_table_to_the_next) {
  Simple fleet(3);
  Dispatcher d = fleet.start();
  std::vector<Begun> open;
  for (int i = 0; i < 30; ++i) open.push_back(d.begin(request("t"), at(1)));

  Fleet next;
  next.policy = fleet.policy;
  next.engine("e2");
  next.engine("new");
  next.engine("e0");
  next.table.content = digest_of("another table");
  std::vector<double> before(3), after(3);
  for (const auto& row : d.drain(at(2)).outcomes) before[row.engine.at()] = row.inflight;
  d.adopt(next.view(), at(3));
  for (const auto& row : d.drain(at(4)).outcomes) after[row.engine.at()] = row.inflight;
  BOOST_TEST(after[0] == before[2]);
  BOOST_TEST(after[1] == 0.0);
  BOOST_TEST(after[2] == before[0]);
  for (const Begun& begun : open) d.finished(begun.ticket, AttemptEnd::succeeded, {}, at(5));
  BOOST_TEST(in_flight(d, 6) == 0u);
}

BOOST_AUTO_TEST_CASE(a_decision_is_explained_with_the_fate_of_every_engine) {
  Simple fleet(4);
  const EngineIndex other = fleet.engine("other", ClusterIndex(0), {ModelName("x")});
  fleet.verdict(EngineIndex(3), HealthState::draining);
  fleet.weights(ClassIndex(0), {0.5, 0.3, 0.2});
  Dispatcher d = fleet.start();
  const Begun begun = d.begin(request("t"), at(1));
  const EngineIndex engine = as<Forward>(begun.verdict).engine;
  d.failed(begun.ticket, AttemptEnd::reset_before_head, at(1.5));
  const auto record = d.record(begun.decision, at(2));
  BOOST_REQUIRE(record.has_value());
  BOOST_TEST(record->decision == to_string(begun.decision));
  BOOST_TEST(record->class_name == "t");
  BOOST_TEST(record->snapshot.sequence == 1u);
  BOOST_REQUIRE(record->attempts.size() == 2u);
  BOOST_TEST((record->attempts[0].engine == engine));
  BOOST_TEST(static_cast<int>(record->attempts[0].end) == static_cast<int>(AttemptEnd::reset_before_head));
  BOOST_TEST((record->attempts[0].ended == 500ms));
  BOOST_REQUIRE(record->candidates.size() == 5u);
  BOOST_TEST(static_cast<int>(record->candidates[0].fate) == static_cast<int>(schema::CandidateFate::chosen));
  BOOST_TEST(record->candidates[0].total_s > 0.0);
  for (const auto& row : record->candidates) {
    if (row.engine == other)
      BOOST_TEST(static_cast<int>(row.fate) == static_cast<int>(schema::CandidateFate::wrong_model));
    if (row.engine == engine)
      BOOST_TEST(static_cast<int>(row.fate) == static_cast<int>(schema::CandidateFate::tried));
    if (row.engine.value == 3)
      BOOST_TEST(static_cast<int>(row.fate) == static_cast<int>(schema::CandidateFate::draining));
  }
  BOOST_TEST(schema::check_fields(*record).has_value());
  BOOST_TEST(!d.record({begun.decision.life + 1, begun.decision.count}, at(2)).has_value());
  BOOST_TEST(!d.record({begun.decision.life, 99}, at(2)).has_value());
}

BOOST_AUTO_TEST_CASE(a_decision_outlives_the_plans_that_are_kept) {
  Simple fleet(4);
  fleet.weights(ClassIndex(0), {0.5, 0.3, 0.2});
  Dispatcher d = fleet.start();
  const Begun begun = d.begin(request("t"), at(1));
  const EngineIndex engine = as<Forward>(begun.verdict).engine;
  d.finished(begun.ticket, AttemptEnd::succeeded, {}, at(2));
  const auto whole = d.record(begun.decision, at(2));
  BOOST_REQUIRE(whole.has_value());
  for (int i = 0; i < 100; ++i) d.adopt(fleet.view(), at(3));
  const auto soon = d.record(begun.decision, at(3));
  BOOST_REQUIRE(soon.has_value());
  BOOST_REQUIRE(soon->candidates.size() == 4u);
  BOOST_TEST(soon->candidates[0].weight == whole->candidates[0].weight);

  for (int i = 0; i < 20'000; ++i) d.adopt(fleet.view(), at(4));  // far more than are kept
  const auto later = d.record(begun.decision, at(5));
  BOOST_REQUIRE(later.has_value());
  BOOST_TEST((later->engine_name == fleet.view()->table->engines[engine.at()].name));
  BOOST_TEST(later->class_name == "t");
  BOOST_TEST(later->rule == whole->rule);
  BOOST_TEST((later->policy == whole->policy && later->table == whole->table));
  BOOST_TEST(later->snapshot.sequence == whole->snapshot.sequence);
  BOOST_REQUIRE(!later->candidates.empty());
  BOOST_TEST(whole->candidates[0].weight > 0);
  BOOST_TEST(later->candidates[0].weight == 0);  // what the plan said is not known
  BOOST_TEST(later->candidates[0].total_s == whole->candidates[0].total_s);
}

BOOST_AUTO_TEST_CASE(what_would_be_decided_changes_nothing_and_is_what_is_then_decided) {
  Simple fleet(6);
  fleet.weights(ClassIndex(0), {0.1, 0.1, 0.2, 0.2, 0.2, 0.2});
  Dispatcher d = fleet.start();
  for (int i = 0; i < 50; ++i) {
    const auto would = d.would_decide(request("t"), at(i));
    const Begun begun = d.begin(request("t"), at(i));
    BOOST_TEST((would.engine == as<Forward>(begun.verdict).engine));
  }
}

BOOST_AUTO_TEST_CASE(decision_ids_are_read_back) {
  for (const std::uint64_t count : {0ull, 1ull, 31ull, 32ull, 123456789ull, ~0ull}) {
    const DecisionId id{0x12345678ab, count};
    const auto read = parse_decision_id(to_string(id));
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST((*read == id));
  }
  for (const char* bad :
       {"", "short", "0123456789", "0123456i-1", "01234567-", "01234567_1", "01234567-zzzzzzzzzzzzzz"})
    BOOST_TEST(!parse_decision_id(bad).has_value(), bad);
}

}  // namespace signalbox::routing::test
