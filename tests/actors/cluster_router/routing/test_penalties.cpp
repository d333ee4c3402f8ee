// What an engine's failures cost it, and for how long.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "actors/cluster_router/routing/lateness.hpp"
#include "actors/cluster_router/routing/penalty.hpp"
#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

using schema::AttemptEnd;

namespace {

const EngineIndex e0(0), e1(1);

Penalties penalties_of(std::size_t engines) {
  Penalties p;
  p.configure({});
  p.remap(std::vector<EngineIndex>(engines));
  return p;
}

/// One engine's failures, each by itself: it counts until a snapshot covers the batch that carried it.
struct PlainRecord {
  struct Failure {
    double log, at;
    std::uint64_t batch;  ///< 0: not carried yet
  };
  std::vector<Failure> failures;

  double multiplier(double now, const policy::Penalty& numbers) const {
    double log = 0;
    for (const Failure& f : failures) log += f.log * std::exp2(-(now - f.at) / to_seconds(numbers.half_life));
    return std::max(numbers.floor, std::exp(log));
  }
  std::size_t batches() const {
    std::vector<std::uint64_t> seen;
    for (const Failure& f : failures)
      if (seen.empty() || seen.back() != f.batch) seen.push_back(f.batch);
    return seen.size();
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_failure_counts_once_here_or_in_the_plan) {
  Penalties p = penalties_of(2);
  BOOST_TEST(p.multiplier(e0, at(0)) == 1.0);
  p.failure(e0, policy::FailureKind::connect, at(0));
  BOOST_TEST(p.multiplier(e0, at(0)) == 0.2, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(p.multiplier(e1, at(0)) == 1.0);
  p.covered(5);  // of batches before it was carried
  BOOST_TEST(p.multiplier(e0, at(0)) == 0.2, boost::test_tools::tolerance(1e-9));
  p.carried_by(6, at(0));
  p.failure(e0, policy::FailureKind::reset, at(0));
  BOOST_TEST(p.multiplier(e0, at(0)) == 0.2 * 0.4, boost::test_tools::tolerance(1e-9));
  p.covered(6);  // ends the first failure, not the second
  BOOST_TEST(p.multiplier(e0, at(0)) == 0.4, boost::test_tools::tolerance(1e-9));
  p.carried_by(7, at(0));
  p.covered(7);
  BOOST_TEST(p.multiplier(e0, at(0)) == 1.0);
}

BOOST_AUTO_TEST_CASE(penalties_decay_with_their_half_life_down_to_nothing_and_never_below_the_floor) {
  Penalties p = penalties_of(1);
  p.failure(e0, policy::FailureKind::connect, at(0));
  BOOST_TEST(p.multiplier(e0, at(10)) == std::sqrt(0.2), boost::test_tools::tolerance(1e-9));
  BOOST_TEST(p.multiplier(e0, at(20)) == std::pow(0.2, 0.25), boost::test_tools::tolerance(1e-9));
  for (int i = 0; i < 100; ++i) p.failure(e0, policy::FailureKind::connect, at(30));
  BOOST_TEST(p.multiplier(e0, at(30)) == 0.02);
  // Old evidence does not pile up: many batches without a plan keep their sum.
  Penalties q = penalties_of(1);
  for (std::uint64_t batch = 1; batch <= 40; ++batch) {
    q.failure(e0, policy::FailureKind::slow, at(0));
    q.carried_by(batch, at(0));
  }
  BOOST_TEST(q.multiplier(e0, at(40)) == std::pow(0.8, 40.0 / 16), boost::test_tools::tolerance(1e-9));
  q.carried_by(41, at(200));
  BOOST_TEST(q.multiplier(e0, at(200)) == 1.0);
}

BOOST_AUTO_TEST_CASE(an_engine_that_asks_to_be_left_alone_is_left_alone_up_to_the_cap) {
  Penalties p = penalties_of(1);
  p.retry_after(e0, 1h, at(0));
  BOOST_TEST(p.multiplier(e0, at(29.9)) == 0.02);
  BOOST_TEST(p.multiplier(e0, at(30.1)) == 1.0);
  p.covered(99);  // it is a wish with an end, not evidence
  BOOST_TEST(p.multiplier(e0, at(29.9)) == 0.02);
}

BOOST_AUTO_TEST_CASE(a_new_life_starts_with_a_clean_record) {
  Penalties p = penalties_of(1);
  p.failure(e0, policy::FailureKind::connect, at(0));
  BOOST_TEST(!p.incarnation(e0, {1, 1}));  // the first word on its life
  BOOST_TEST(p.multiplier(e0, at(0)) < 1.0);
  BOOST_TEST(!p.incarnation(e0, {1, 1}));
  BOOST_TEST(p.incarnation(e0, {2, 1}));
  BOOST_TEST(p.multiplier(e0, at(0)) == 1.0);
}

BOOST_AUTO_TEST_CASE(one_failure_counts_once_whatever_is_carried_and_covered_when) {
  Rng rng(11);
  const policy::Penalty numbers;
  std::size_t ended_by_plan = 0;
  for (int run = 0; run < 300; ++run) {
    Penalties penalties = penalties_of(2);
    PlainRecord plain;
    double now = 0;
    std::uint64_t batch = 0, covered = 0;
    for (int i = 0; i < 400; ++i) {
      now += rng.exponential(0.3);
      const double what = rng.uniform();
      if (what < 0.5 && plain.batches() < 7) {  // more open batches are merged, and then end together
        const auto kind = static_cast<policy::FailureKind>(rng.below(policy::failure_kind_count));
        penalties.failure(e0, kind, at(now));
        plain.failures.push_back({std::log(numbers.of(kind)), now, 0});
      } else if (what < 0.75) {
        penalties.carried_by(++batch, at(now));
        for (auto& f : plain.failures)
          if (f.batch == 0) f.batch = batch;
      } else if (batch > covered) {
        covered += 1 + rng.below(batch - covered);
        penalties.covered(covered);
        ended_by_plan +=
            std::erase_if(plain.failures, [&](const auto& f) { return f.batch != 0 && f.batch <= covered; });
        if (rng.chance(0.3)) penalties.covered(rng.below(covered + 1));  // an older plan ends nothing new
      }
      const double due = plain.multiplier(now, numbers);
      // A batch that has decayed to one percent of weight is forgotten.
      BOOST_REQUIRE_SMALL(penalties.multiplier(e0, at(now)) / due - 1, 0.011 * 8);
      BOOST_REQUIRE(penalties.multiplier(e1, at(now)) == 1.0);
    }
  }
  BOOST_TEST(ended_by_plan > 1'000u);
}

BOOST_AUTO_TEST_CASE(a_failure_ends_when_a_snapshot_has_seen_the_report_that_carried_it) {
  Fleet fleet;
  fleet.engines(3).request_class("t", Criticality::standard);
  fleet.weights(ClassIndex(0), {0.4, 0.3, 0.3});
  Dispatcher d(options());
  d.adopt(fleet.view(), at(0));
  const Begun begun = d.begin(request("t"), at(1));
  const EngineIndex failed = std::get<Forward>(begun.verdict).engine;
  d.failed(begun.ticket, AttemptEnd::connect_error, at(1));
  const auto penalty = [&](double now) {
    for (const auto& row : d.drain(at(now)).outcomes)
      if (row.engine == failed) return row.penalty;
    return 1.0;
  };
  BOOST_TEST(penalty(1.1) == 0.2, boost::test_tools::tolerance(0.02));  // batch 1 carries it
  BOOST_TEST(penalty(1.2) == 0.2, boost::test_tools::tolerance(0.05));
  fleet.covered = {0};
  d.adopt(fleet.view(), at(2));
  BOOST_TEST(penalty(2) < 0.3);
  fleet.covered = {1};
  d.adopt(fleet.view(), at(2));
  BOOST_TEST(penalty(2) == 1.0);
}

BOOST_AUTO_TEST_CASE(a_clients_error_never_counts_against_an_engine_and_the_engines_own_do) {
  const auto penalty_after = [](const std::function<void(Dispatcher&, Ticket)>& happens) {
    Fleet fleet;
    fleet.engines(1).request_class("t", Criticality::standard);
    Dispatcher d(options());
    d.adopt(fleet.view(), at(0));
    for (int i = 0; i < 3; ++i) {
      const Begun begun = d.begin(request("t"), at(1));
      BOOST_REQUIRE(std::holds_alternative<Forward>(begun.verdict));
      happens(d, begun.ticket);
      d.client_left(begun.ticket, at(1));  // if it is still there
    }
    return d.drain(at(1)).outcomes.at(0).penalty;
  };
  const auto answers = [](std::uint16_t status) {
    return [status](Dispatcher& d, Ticket t) {
      if (d.head(t, status, {}, at(1))) return;
      d.first_byte(t, at(1));
      d.finished(t, AttemptEnd::succeeded, {}, at(1));
    };
  };
  const auto fails = [](AttemptEnd end) {
    return [end](Dispatcher& d, Ticket t) { d.failed(t, end, at(1)); };
  };
  for (const std::uint16_t status : {400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 499})
    BOOST_TEST(penalty_after(answers(status)) == 1.0, status);
  for (const std::uint16_t status : {500, 502, 503, 504, 529})
    BOOST_TEST(penalty_after(answers(status)) < 0.2, status);
  for (const AttemptEnd end :
       {AttemptEnd::connect_error, AttemptEnd::reset_before_head, AttemptEnd::first_byte_timeout})
    BOOST_TEST(penalty_after(fails(end)) < 0.2, name_of(end));
  BOOST_TEST(penalty_after([](Dispatcher& d, Ticket t) { d.client_left(t, at(1)); }) == 1.0);
}

BOOST_AUTO_TEST_CASE(an_engine_that_is_late_alone_is_an_outlier_and_one_that_is_late_with_all_is_not) {
  Rng rng(2);
  const auto share_late = [&](double own, double others, std::size_t engines, double spread = 0.23) {
    Lateness lateness;
    lateness.remap(std::vector<EngineIndex>(engines));
    int late = 0, seen = 0;
    for (int i = 0; i < 2'000; ++i) {
      const EngineIndex e(rng.below(engines));
      const double expected = rng.uniform(0.05, 2);
      const double took = expected * (e == e0 ? own : others) * std::exp(spread * rng.normal());
      const bool is_late = lateness.late(e, took, expected);
      if (i < 200) continue;
      seen += e == e0 ? 1 : 0;
      late += is_late ? (e == e0 || spread > 0.5 ? 1 : 1'000'000) : 0;  // nobody else, ever
    }
    return static_cast<double>(late) / seen;
  };
  BOOST_TEST(share_late(6, 1, 4) > 0.8);
  BOOST_TEST(share_late(6, 6, 4) == 0.0);
  BOOST_TEST(share_late(1, 1, 4) == 0.0);
  BOOST_TEST(share_late(1.5, 1, 4) == 0.0);
  BOOST_TEST(share_late(0.1, 1, 4) == 0.0);
  BOOST_TEST(share_late(6, 1, 2) == 0.0);  // of two nobody knows which one is right
  // Where prompts of all lengths queue, answers vary: that is nobody's fault, and real trouble still shows.
  BOOST_TEST(share_late(1, 1, 8, 1.0) < 0.01);
  BOOST_TEST(share_late(40, 1, 8, 1.0) > 0.5);
}

BOOST_AUTO_TEST_CASE(an_outlier_in_latency_loses_requests) {
  Fleet fleet;
  fleet.engines(4).request_class("t", Criticality::standard);
  Dispatcher d(options());
  d.adopt(fleet.view(), at(0));
  Rng rng(1);
  std::size_t before = 0, after = 0;
  for (int i = 0; i < 1'200; ++i) {
    const double now = 1 + i * 0.05;
    RequestFacts facts = request("t", 400);
    facts.stream = true;
    const Begun begun = d.begin(std::move(facts), at(now));
    const bool slow = std::get<Forward>(begun.verdict).engine == e1;
    if (slow) ++(i < 100 ? before : i >= 200 ? after : before);
    d.head(begun.ticket, 200, {}, at(now));
    d.first_byte(begun.ticket, at(now + (slow && i >= 100 ? 2.0 : 0.04)));
    d.finished(begun.ticket, AttemptEnd::succeeded, {100, 0, 10}, at(now + 0.05));
    if (i % 20 == 0) d.drain(at(now));
  }
  BOOST_TEST_MESSAGE("before " << before << " of 200, after " << after << " of 1000");
  BOOST_TEST(before > 20u);
  BOOST_TEST(after < 120u);
}

BOOST_AUTO_TEST_CASE(a_new_engine_is_ramped_on_its_share_and_on_what_is_in_flight) {
  for (const double factor : {0.1, 0.5, 1.0}) {
    Fleet fleet;
    fleet.engines(4).request_class("t", Criticality::standard);
    for (auto& row : fleet.table.engines) row.max_batch = 40;
    fleet.verdict(e0, factor < 1 ? HealthState::starting : HealthState::ready, factor);
    Dispatcher d(options());
    d.adopt(fleet.view(), at(0));
    std::size_t new_one = 0;
    for (int i = 0; i < 100; ++i)
      if (const Begun begun = d.begin(request("t"), at(1)); std::get<Forward>(begun.verdict).engine == e0)
        ++new_one;
    BOOST_TEST_MESSAGE("factor " << factor << ": " << new_one << " of 100");
    BOOST_TEST(static_cast<double>(new_one) <= 40 * factor + 1);  // rounded up
    BOOST_TEST(new_one > 0u);
  }
}

}  // namespace signalbox::routing::test
