// What is believed of engines' caches, and how their answers and their heat correct it.
#include <boost/test/unit_test.hpp>
#include <list>
#include <numeric>

#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

using schema::AttemptEnd;

namespace {

constexpr std::uint64_t blocks_each = 8, block_bytes = default_block_bytes;
constexpr double block_tokens = block_bytes / bytes_per_token;

PromptBlocks prompt(std::uint64_t number) {
  PromptBlocks out;
  for (std::uint64_t i = 0; i < blocks_each; ++i) out.push_back(mix64(number * 100 + i));
  return out;
}
RequestFacts ask(std::uint64_t number) {
  RequestFacts facts = request("t", blocks_each * block_bytes);
  facts.blocks = prompt(number);
  return facts;
}

/// An engine that holds whole prompts, the most recently used ones.
class HonestCache {
 public:
  explicit HonestCache(std::size_t prompts) : room_(prompts) {}
  /// Tokens of this prompt that were there; they are afterwards.
  std::uint64_t serve(std::uint64_t number) {
    const auto found = std::ranges::find(held_, number);
    const bool hit = found != held_.end();
    if (hit) held_.erase(found);
    held_.push_front(number);
    if (held_.size() > room_) held_.pop_back();
    return room_ > 0 && hit ? static_cast<std::uint64_t>(blocks_each * block_tokens) : 0;
  }

 private:
  std::size_t room_;
  std::list<std::uint64_t> held_;
};

struct One {
  explicit One(std::size_t engines = 1) {
    fleet.engines(engines).request_class("t", Criticality::standard);
    dispatcher.adopt(fleet.view(), at(0));
  }
  double believed(std::uint64_t number) {
    return dispatcher.would_decide(ask(number), at(now)).candidates.front().matched_tokens;
  }
  /// Serves one request; `tells`: the answer says what was cached.
  void serve(std::uint64_t number, HonestCache& cache, bool tells) {
    now += 0.1;
    const Begun begun = dispatcher.begin(ask(number), at(now));
    dispatcher.head(begun.ticket, 200, {}, at(now));
    dispatcher.first_byte(begun.ticket, at(now));
    Usage usage{static_cast<std::uint64_t>(blocks_each * block_tokens), {}, 1};
    const std::uint64_t cached = cache.serve(number);
    if (tells) usage.cached_tokens = cached;
    dispatcher.finished(begun.ticket, AttemptEnd::succeeded, usage, at(now));
  }

  Fleet fleet;
  Dispatcher dispatcher{options()};
  double now = 1;
};

/// The share of beliefs in cached prompts that fail, once it is settled.
double wrong_beliefs(std::size_t room, bool tells) {
  One one;
  HonestCache cache(room);
  Rng rng(3);
  int believed = 0, wrong = 0;
  for (int i = 0; i < 6'000; ++i) {
    const std::uint64_t number = static_cast<std::uint64_t>(std::exp(rng.uniform() * std::log(150.0)));
    HonestCache before = cache;
    if (i > 3'000 && one.believed(number) > block_tokens)
      ++believed, wrong += before.serve(number) == 0 ? 1 : 0;
    one.serve(number, cache, tells);
  }
  BOOST_TEST_MESSAGE(room << " prompts, " << (tells ? "told" : "not told") << ": " << wrong << " of "
                          << believed);
  return believed == 0 ? 0.0 : static_cast<double>(wrong) / believed;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_that_holds_less_than_it_declares_is_believed_less) {
  // Declared are 300 000 tokens with the index's reserve, which is 146 prompts.
  BOOST_TEST(wrong_beliefs(20, false) > 0.25);
  BOOST_TEST(wrong_beliefs(20, true) < 0.12);
  BOOST_TEST(wrong_beliefs(60, true) < 0.12);
  BOOST_TEST(wrong_beliefs(200, true) == 0.0);
}

BOOST_AUTO_TEST_CASE(an_engine_that_finds_nothing_three_times_has_lost_its_cache) {
  One one;
  HonestCache cache(200), emptied(200);
  for (std::uint64_t n = 0; n < 40; ++n) one.serve(n, cache, true);
  BOOST_TEST(one.believed(30) > 7 * block_tokens);
  for (std::uint64_t n = 0; n < 3; ++n) one.serve(n, emptied, true);
  BOOST_TEST(one.believed(30) == 0.0);
  for (int i = 0; i < 2; ++i) one.serve(50, emptied, true);
  BOOST_TEST(one.believed(50) > 7 * block_tokens);  // what it is sent from now on counts again
}

// A prompt that another router reports is known to wait there as well, but for what the engine holds already.
BOOST_AUTO_TEST_CASE(what_another_router_sent_is_believed_to_wait) {
  Fleet fleet;
  fleet.engines(2);
  fleet.request_class("all", Criticality::standard);
  fleet.routers = 2;
  for (const auto engine : {EngineIndex(0), EngineIndex(1)}) fleet.signal(engine, at(1), 0, 0, 0);
  Dispatcher dispatcher(options());
  dispatcher.adopt(fleet.view(), at(1));
  auto batch = std::make_shared<SentBatch>();
  batch->number = 1;
  batch->loop = UINT32_MAX;
  for (std::uint64_t block = 1; block <= 40; ++block) batch->rows.push_back({EngineIndex(1), block});
  for (std::uint64_t block = 1; block <= 10; ++block) batch->rows.push_back({EngineIndex(1), block});
  fleet.sent.push_back(batch);
  const auto view = fleet.view();
  dispatcher.adopt(view, at(1));
  const Begun begun = dispatcher.begin(request("all"), at(1));
  BOOST_TEST(as<Forward>(begun.verdict).engine.at() == 0u);
  const auto record = dispatcher.record(begun.decision, at(1));
  BOOST_REQUIRE(record.has_value());
  BOOST_REQUIRE(record->candidates.size() == 2u);
  const double wait_s = view->policy->routing.tw * view->at(EngineIndex(1)).c * 40 * 256;
  for (const auto& row : record->candidates)
    BOOST_TEST(row.queue_s == (row.engine.at() == 1 ? wait_s : 0.0), boost::test_tools::tolerance(1e-6));
  dispatcher.finished(begun.ticket, AttemptEnd::succeeded, {}, at(2));
}

BOOST_AUTO_TEST_CASE(an_engine_that_does_not_tell_is_believed_as_before) {
  One one;
  HonestCache nothing(0);
  for (std::uint64_t n = 0; n < 40; ++n) one.serve(n, nothing, false);
  BOOST_TEST(one.believed(10) > 7 * block_tokens);
}

BOOST_AUTO_TEST_CASE(one_hot_engine_does_not_switch_affinity_off_for_the_others) {
  One one(4);
  Fleet& fleet = one.fleet;
  // Each engine holds prompts of its own; its readings say how busy it is.
  std::vector<EngineIndex> holder;
  for (std::uint64_t n = 0; n < 40; ++n) {
    const Begun begun = one.dispatcher.begin(ask(n), at(1));
    holder.push_back(std::get<Forward>(begun.verdict).engine);
    one.dispatcher.client_left(begun.ticket, at(1));
  }
  const auto home_share = [&](bool hot_ones) {
    int home = 0, all = 0;
    for (std::uint64_t n = 0; n < 40; ++n) {
      if ((holder[n] == holder[0]) != hot_ones) continue;
      ++all;
      home += one.dispatcher.would_decide(ask(n), at(2)).engine == holder[n] ? 1 : 0;
    }
    BOOST_REQUIRE(all >= 3);
    return static_cast<double>(home) / all;
  };
  for (std::size_t e = 0; e < 4; ++e) fleet.signal(EngineIndex(e), at(1.9), 4, 0, 0.1);
  one.dispatcher.adopt(fleet.view(), at(2));
  BOOST_TEST(home_share(true) == 1.0);
  BOOST_TEST(home_share(false) == 1.0);
  fleet.signal(holder[0], at(1.9), 200, 30, 0.6);
  one.dispatcher.adopt(fleet.view(), at(2));
  BOOST_TEST(home_share(true) == 0.0);   // an overloaded favourite loses its requests
  BOOST_TEST(home_share(false) == 1.0);  // the others keep theirs
}

namespace {

/// What an engine's proxy says of its cache.
void tell(One& one, schema::CacheDigest& digest, std::uint64_t clears) {
  digest.knowledge = schema::CacheKnowledge::complete;
  digest.clears = clears;
  one.fleet.heard[0].cache = &digest;
  one.dispatcher.adopt(one.fleet.view(), at(one.now));
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_that_says_that_it_emptied_its_cache_is_believed_at_once) {
  One one;
  HonestCache cache(200);
  schema::CacheDigest digest;
  for (std::uint64_t n = 0; n < 10; ++n) one.serve(n, cache, false);
  tell(one, digest, 4);  // the first word is where counting begins
  BOOST_TEST(one.believed(5) > 7 * block_tokens);
  tell(one, digest, 0);  // of a proxy that was restarted
  BOOST_TEST(one.believed(5) > 7 * block_tokens);
  tell(one, digest, 1);
  BOOST_TEST(one.believed(5) == 0.0);
  one.serve(5, cache, false);
  BOOST_TEST(one.believed(5) > 7 * block_tokens);
  tell(one, digest, 1);
  BOOST_TEST(one.believed(5) > 7 * block_tokens);
}

BOOST_AUTO_TEST_CASE(a_cache_that_drops_blocks_is_believed_as_deep_as_it_then_is) {
  One one;
  HonestCache cache(200);
  schema::CacheDigest digest;
  digest.block_tokens = 16, digest.held_blocks = 20 * 128;  // 20 prompts of 2,048 tokens
  for (std::uint64_t n = 0; n < 100; ++n) one.serve(n, cache, false);
  tell(one, digest, 0);  // nothing was dropped yet: it is not full
  BOOST_TEST(one.believed(50) > 7 * block_tokens);
  digest.removed_total = 7;
  tell(one, digest, 0);
  BOOST_TEST(one.believed(50) == 0.0);
  BOOST_TEST(one.believed(99) > 7 * block_tokens);
  BOOST_TEST(one.believed(72) > 7 * block_tokens);  // half as much again, as without events
}

}  // namespace signalbox::routing::test
