// An engine's KV events through gaps, restarts, slow joins and lost replays.
#include <boost/test/unit_test.hpp>
#include <deque>

#include "actors/engine_proxy/events/kv_follower.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;
using schema::CacheKnowledge;

namespace {

Instant at(double s) { return instant_at(from_seconds(s)); }

KvCounts blocks(std::uint64_t stored, std::uint64_t removed = 0) {
  KvCounts out;
  out.stored = out.stored_since_clear = stored;
  out.removed = out.removed_since_clear = removed;
  out.block_tokens = 16;
  return out;
}
KvCounts numbered(std::uint64_t stored, std::uint64_t fingerprint) {
  KvCounts out = blocks(stored);
  out.fingerprint = fingerprint;
  return out;
}
KvCounts clear() {
  KvCounts out;
  out.clears = 1;
  return out;
}

/// One that asked for all there was, of an engine with nothing yet.
KvFollower joined() {
  KvFollower f(true);
  BOOST_REQUIRE(f.take_question(at(0)) == 0u);
  f.replay_ended(at(0.1));
  return f;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_heard_from_the_beginning_is_complete) {
  KvFollower f = joined();
  BOOST_TEST(f.settled());
  for (std::uint64_t n = 0; n < 10; ++n) f.live(n, blocks(3, 1), at(1));
  BOOST_TEST((f.state().knowledge == CacheKnowledge::complete));
  BOOST_TEST(f.state().held_blocks == 20u);
  BOOST_TEST(f.state().missed == 0u);
}

BOOST_AUTO_TEST_CASE(who_joins_late_gets_what_was_before_and_counts_nothing_twice) {
  KvFollower f(true);
  BOOST_TEST(!f.settled());
  BOOST_REQUIRE(f.take_question(at(0)) == 0u);
  f.live(4, blocks(100), at(0.01));  // heard while the replay is on its way, and part of it as well
  f.live(5, blocks(100), at(0.02));
  for (std::uint64_t n = 0; n <= 4; ++n) f.replayed(n, blocks(1), at(0.03));
  BOOST_TEST(!f.settled());
  f.replay_ended(at(0.04));
  BOOST_TEST(f.settled());
  BOOST_TEST(f.state().held_blocks == 105u);
  f.live(6, blocks(1), at(1));
  BOOST_TEST(f.state().held_blocks == 106u);
  BOOST_TEST(f.state().clears == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_on_its_way_when_the_replay_ended_is_not_a_restart) {
  KvFollower f(true);
  f.take_question(at(0));
  for (std::uint64_t n = 0; n <= 4; ++n) f.replayed(n, blocks(1), at(0.03));
  f.replay_ended(at(0.04));
  f.live(3, blocks(1), at(0.05));
  f.live(4, blocks(1), at(0.06));
  f.live(5, blocks(1), at(0.07));
  BOOST_TEST(f.state().held_blocks == 6u);
  BOOST_TEST(f.state().clears == 0u);
}

BOOST_AUTO_TEST_CASE(a_gap_is_asked_for_and_filled) {
  KvFollower f = joined();
  f.live(0, blocks(1), at(1));
  f.live(3, blocks(1), at(1));
  BOOST_REQUIRE(f.take_question(at(1)) == 0u);  // the last one again, to see that it is the same life
  f.live(4, blocks(1), at(1));
  f.replayed(0, blocks(1), at(1.1));
  f.replayed(1, blocks(10), at(1.1)), f.replayed(2, blocks(10), at(1.1)), f.replayed(3, blocks(1), at(1.1));
  f.replay_ended(at(1.2));
  BOOST_TEST(f.state().held_blocks == 23u);
  BOOST_TEST((f.state().knowledge == CacheKnowledge::complete));
  BOOST_TEST(f.state().replayed == 3u);
}

BOOST_AUTO_TEST_CASE(a_gap_that_nobody_fills_makes_the_rest_partial_until_the_next_clear) {
  for (const bool can_ask : {false, true}) {
    KvFollower f = can_ask ? joined() : KvFollower(false);
    f.live(0, blocks(5), at(1));
    f.live(2, blocks(5), at(1));
    if (can_ask) {
      BOOST_REQUIRE(f.take_question(at(1)) == 0u);
      f.on_wake(at(2.9));
      BOOST_TEST(!f.settled());
      BOOST_TEST((f.next_wake() == at(3)));
      f.on_wake(at(3));
    }
    BOOST_TEST(f.settled());
    BOOST_TEST((f.state().knowledge == CacheKnowledge::partial));
    BOOST_TEST(f.state().held_blocks == 0u);
    BOOST_TEST(f.state().missed == 1u);
    f.live(3, clear(), at(4));
    f.live(4, blocks(2), at(4));
    BOOST_TEST((f.state().knowledge == CacheKnowledge::complete));
    BOOST_TEST(f.state().held_blocks == 2u);
    BOOST_TEST(f.state().clears == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_replay_that_begins_later_than_asked_is_a_part) {
  KvFollower f(true);
  f.take_question(at(0));
  for (std::uint64_t n = 700; n < 710; ++n) f.replayed(n, blocks(1), at(0.1));
  f.replay_ended(at(0.2));
  f.live(710, blocks(1), at(1));
  BOOST_TEST((f.state().knowledge == CacheKnowledge::partial));
  BOOST_TEST(f.state().missed == 700u);
  BOOST_TEST(f.state().batches == 11u);
}

BOOST_AUTO_TEST_CASE(a_number_that_has_been_is_a_new_life_with_an_empty_cache) {
  for (const bool can_ask : {false, true}) {
    KvFollower f = can_ask ? joined() : KvFollower(false);
    for (std::uint64_t n = 0; n < 50; ++n) f.live(n, blocks(2), at(1));
    f.live(0, blocks(7), at(9));
    BOOST_TEST(f.state().clears == 1u);
    BOOST_TEST(f.state().held_blocks == 7u);
    BOOST_TEST((f.state().knowledge == CacheKnowledge::complete));
    f.live(1, blocks(1), at(9));
    BOOST_TEST(f.state().held_blocks == 8u);
    // Of another life its first batches were missed.
    f.live(1, blocks(4), at(20));
    BOOST_TEST(f.state().clears == 2u);
    if (can_ask) {
      BOOST_REQUIRE(f.take_question(at(20)) == 0u);
      f.replayed(0, blocks(3), at(20)), f.replayed(1, blocks(4), at(20));
      f.replay_ended(at(20.1));
      BOOST_TEST(f.state().held_blocks == 7u);
    } else {
      BOOST_TEST((f.state().knowledge == CacheKnowledge::partial));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_new_life_whose_first_batches_were_missed_is_told_by_the_content_of_the_last_one) {
  for (const bool gap : {false, true}) {
    KvFollower f = joined();
    for (std::uint64_t n = 0; n < 5; ++n) f.live(n, numbered(3, 100 + n), at(1));
    if (gap)
      f.live(9, numbered(1, 209), at(5));
    else
      f.connected();
    BOOST_REQUIRE(f.take_question(at(5)) == 4u);
    f.replayed(4, numbered(1, 204), at(5));
    f.replayed(5, numbered(1, 205), at(5));  // answers to a question that is void
    f.replay_ended(at(5));
    BOOST_TEST(f.state().clears == 1u);
    BOOST_REQUIRE(f.take_question(at(5)) == 0u);
    for (std::uint64_t n = 0; n < 10; ++n) f.replayed(n, numbered(1, 200 + n), at(5));
    f.replay_ended(at(5));
    BOOST_TEST(f.state().held_blocks == 10u);
    BOOST_TEST((f.state().knowledge == CacheKnowledge::complete));
    f.live(10, numbered(1, 210), at(6));
    BOOST_TEST(f.state().held_blocks == 11u);
  }
}

BOOST_AUTO_TEST_CASE(a_new_life_with_less_than_was_heard_is_told_by_an_empty_replay) {
  KvFollower f(true);
  f.take_question(at(0));
  for (std::uint64_t n = 0; n < 5; ++n) f.replayed(n, numbered(3, 100 + n), at(0));
  f.replay_ended(at(0));
  f.connected();
  BOOST_REQUIRE(f.take_question(at(0.5)) == 4u);
  f.replay_ended(at(0.5));
  BOOST_TEST(f.state().clears == 1u);
  BOOST_REQUIRE(f.take_question(at(0.5)) == 0u);
  f.replayed(0, numbered(2, 200), at(0.5));
  f.replay_ended(at(0.5));
  BOOST_TEST(f.state().held_blocks == 2u);
  BOOST_TEST((f.state().knowledge == CacheKnowledge::complete));
}

BOOST_AUTO_TEST_CASE(a_connection_that_stands_again_to_the_same_life_changes_nothing) {
  KvFollower f = joined();
  for (std::uint64_t n = 0; n < 5; ++n) f.live(n, numbered(3, 100 + n), at(1));
  f.connected();
  BOOST_REQUIRE(f.take_question(at(5)) == 4u);
  f.replayed(4, numbered(3, 104), at(5));
  f.replayed(5, numbered(3, 105), at(5));
  f.replay_ended(at(5));
  BOOST_TEST(f.state().clears == 0u);
  BOOST_TEST(f.state().held_blocks == 18u);
}

BOOST_AUTO_TEST_CASE(an_engine_that_comes_later_than_its_proxy_is_asked_when_it_is_there) {
  KvFollower f(true);
  BOOST_REQUIRE(f.take_question(at(0)) == 0u);
  f.on_wake(at(2));
  BOOST_TEST(f.settled());
  f.connected();
  BOOST_REQUIRE(f.take_question(at(60)) == 0u);
  f.replayed(0, blocks(4), at(60)), f.replayed(1, blocks(4), at(60));
  f.replay_ended(at(60));
  BOOST_TEST(f.state().held_blocks == 8u);
}

BOOST_AUTO_TEST_CASE(a_batch_that_cannot_be_read_makes_the_rest_partial) {
  KvFollower f = joined();
  f.live(0, blocks(1), at(1));
  f.live(1, std::nullopt, at(1));
  f.live(2, blocks(1), at(1));
  BOOST_TEST((f.state().knowledge == CacheKnowledge::partial));
  BOOST_TEST(f.state().unreadable == 1u);
  BOOST_TEST(f.state().missed == 0u);
}

/// An engine with a bounded buffer whose batches are lost, repeated late or come while it is restarted: in the end the follower
/// knows exactly what it holds, or says that it does not.
BOOST_AUTO_TEST_CASE(under_random_losses_it_is_right_or_says_that_it_is_not_sure) {
  Rng rng(21);
  std::size_t complete = 0;
  for (int round = 0; round < 300; ++round) {
    KvFollower f(rng.chance(0.8));
    std::deque<KvCounts> kept;
    std::uint64_t first = 0, held = 0;
    const std::size_t buffer = 1 + rng.below(60);
    double now = 10;
    for (int step = 0; step < 400; ++step, now += 0.01) {
      if (const auto from = f.take_question(at(now)); from && rng.chance(0.9)) {
        for (std::uint64_t n = std::max(*from, first); n < first + kept.size(); ++n)
          f.replayed(n, kept[n - first], at(now));
        if (rng.chance(0.9)) f.replay_ended(at(now));
      }
      f.on_wake(at(now));
      if (rng.chance(0.002)) kept.clear(), first = held = 0, now += 5;  // restarted
      if (!rng.chance(0.5)) continue;
      KvCounts counts = blocks(rng.below(4));
      if (held > 20) counts = blocks(1, 1 + rng.below(5));
      if (rng.chance(0.01)) counts = clear(), held = 0;
      counts.fingerprint = 1 + rng.below(1ull << 60);
      held += counts.stored_since_clear, held -= counts.removed_since_clear;
      kept.push_back(counts);
      if (kept.size() > buffer) kept.pop_front(), ++first;
      if (!rng.chance(0.05)) f.live(first + kept.size() - 1, counts, at(now));
    }
    // It hears one more batch and is left alone with what it asks for.
    kept.push_back(numbered(1, 7));
    ++held;
    f.live(first + kept.size() - 1, kept.back(), at(now));
    while (const auto from = f.take_question(at(now))) {
      for (std::uint64_t n = std::max(*from, first); n < first + kept.size(); ++n)
        f.replayed(n, kept[n - first], at(now));
      f.replay_ended(at(now));
    }
    f.on_wake(at(now + 10));
    BOOST_REQUIRE(f.settled());
    if (f.state().knowledge != CacheKnowledge::complete) continue;
    ++complete;
    BOOST_TEST(f.state().held_blocks == held);
  }
  BOOST_TEST(complete > 30u);
}
