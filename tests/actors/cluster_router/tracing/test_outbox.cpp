#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/tracing/outbox.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::tracing;

namespace {

const Instant start = instant_at(1000s);

EndedTrace numbered(std::uint64_t number) {
  EndedTrace out;
  out.trace.decision.count = number;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_batch_goes_when_it_is_full_or_old) {
  Outbox box({.most = 10, .batch = 3, .linger = 1s});
  BOOST_TEST((box.due() == end_of_time));
  box.add(numbered(1), start);
  BOOST_TEST((box.due() == start + 1s));
  BOOST_TEST(box.next(start + 999ms).empty());
  BOOST_TEST(box.next(start + 1s).size() == 1u);
  box.sent();
  for (std::uint64_t i = 2; i <= 5; ++i) box.add(numbered(i), start + 2s);
  BOOST_TEST(box.next(start + 2s).size() == 3u);
  box.sent();
  BOOST_TEST(box.next(start + 2s).empty());
  BOOST_TEST(box.next(start + 3s).size() == 1u);
  box.sent();
  BOOST_TEST(box.counters().exported == 5u);
  BOOST_TEST(box.waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_collector_that_is_away_is_asked_ever_less_often_and_gets_the_same_batch) {
  Outbox box({.most = 4, .batch = 2, .first_pause = 1s, .longest_pause = 5s});
  for (std::uint64_t i = 1; i <= 6; ++i) box.add(numbered(i), start);
  BOOST_TEST(box.counters().dropped == 2u);
  Instant now = start;
  for (const Duration pause : {1s, 2s, 4s, 5s, 5s}) {
    BOOST_REQUIRE(box.next(now).size() == 2u);
    BOOST_TEST(box.next(now).front().trace.decision.count == 1u);
    box.failed(now, 0s);
    BOOST_TEST((box.due() == now + pause));
    BOOST_TEST(box.next(now + pause - 1ms).empty());
    now += pause;
  }
  box.next(now);
  box.failed(now, 3s);  // the pause is longer than it asks for
  BOOST_TEST((box.due() == now + 5s));
  now += 5s;
  BOOST_TEST(box.next(now).size() == 2u);
  box.sent();
  BOOST_TEST(box.next(now).front().trace.decision.count == 3u);
  box.failed(now, 1h);  // a collector cannot ask for more than the longest
  BOOST_TEST((box.due() == now + 5s));
  box.hurry();
  BOOST_TEST(box.next(now).size() == 2u);
  box.refused();
  BOOST_TEST(box.counters().exported == 2u);
  BOOST_TEST(box.counters().refused == 2u);
  BOOST_TEST(box.counters().failures == 8u);
}

BOOST_AUTO_TEST_CASE(every_trace_is_accounted_for_in_order) {
  Rng rng(7);
  Outbox box({.most = 50, .batch = 8, .linger = 100ms, .first_pause = 50ms, .longest_pause = 400ms});
  std::uint64_t added = 0, latest = 0;
  Instant now = start;
  for (int step = 0; step < 20'000; ++step) {
    now += Duration(rng.below(20'000'000));
    for (std::uint64_t i = rng.below(4); i > 0; --i) box.add(numbered(++added), now);
    const auto& batch = box.next(now);
    if (batch.empty()) continue;
    BOOST_TEST_REQUIRE(batch.size() <= 8u);
    if (rng.chance(0.3)) {
      box.failed(now, rng.chance(0.5) ? 100ms : 0ms);
      continue;
    }
    for (const EndedTrace& trace : batch) {
      BOOST_TEST_REQUIRE(trace.trace.decision.count > latest);
      latest = trace.trace.decision.count;
    }
    rng.chance(0.1) ? box.refused() : box.sent();
    const OutboxCounters& c = box.counters();
    BOOST_TEST_REQUIRE(c.exported + c.dropped + c.refused + box.waiting() == added);
  }
  BOOST_TEST(box.counters().dropped > 0u);
  BOOST_TEST(box.counters().exported > 1000u);
}
