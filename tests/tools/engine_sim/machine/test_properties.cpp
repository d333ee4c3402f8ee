#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "drive.hpp"

using namespace signalbox;
using namespace signalbox::engine_sim;

namespace {

EngineOptions random_options(Rng& rng) {
  EngineOptions o;
  o.block_tokens = 1 + static_cast<std::uint32_t>(rng.below(8));
  o.kv_blocks = 20 + static_cast<std::uint32_t>(rng.below(60));
  o.max_batch = 1 + static_cast<std::uint32_t>(rng.below(6));
  o.step_tokens = o.max_batch + 1 + static_cast<std::uint32_t>(rng.below(30));
  o.chunk_tokens = 1 + static_cast<std::uint32_t>(rng.below(20));
  o.max_waiting = static_cast<std::uint32_t>(rng.below(8));
  o.step_noise = rng.chance(0.5) ? 0.2 : 0;
  o.prefix_caching = rng.chance(0.8);
  o.report_blocks = true;
  return o;
}

Request random_request(Rng& rng, RequestId id, const EngineOptions& o) {
  const auto room = std::uint64_t{o.kv_blocks} * o.block_tokens;
  Request r{.id = id};
  r.prompt_tokens = 1 + static_cast<std::uint32_t>(rng.below(room * 6 / 10));
  r.output_tokens = static_cast<std::uint32_t>(rng.below(room / 2));
  r.max_output_tokens = static_cast<std::uint32_t>(rng.below(room / 2));
  const auto family = rng.below(3);
  r.blocks =
      content(family, 2 + static_cast<std::uint32_t>(rng.below(6)), r.prompt_tokens / o.block_tokens, id);
  return r;
}

/// A random life of one engine: submissions, cancellations and faults at random times.
struct Life {
  std::vector<Event> events;
  std::map<RequestId, Request> accepted;
  std::set<RequestId> cancelled;
  Engine engine;

  explicit Life(std::uint64_t seed) : Life(seed, Rng(seed)) {}

 private:
  Life(std::uint64_t seed, Rng rng) : engine(random_options(rng), seed) {
    Instant now = instant_at(0ns);
    for (RequestId id = 1; id <= 60; ++id) {
      now += from_seconds(rng.exponential(0.05));
      advance(now);
      const Request request = random_request(rng, id, engine.options());
      if (engine.submit(request, now) == Admission::accepted) accepted[id] = request;
      if (rng.chance(0.1) && !accepted.empty()) {
        const RequestId victim = accepted.rbegin()->first;
        if (engine.cancel(victim, now)) cancelled.insert(victim);
      }
      if (rng.chance(0.1))
        engine.set_faults({.slowness = rng.uniform(0.5, 4), .frozen = rng.chance(0.3)}, now);
      BOOST_REQUIRE(engine.consistent());
    }
    engine.set_faults({}, now);
    advance(end_of_time - 1ns);
  }
  void advance(Instant until) {
    while (engine.next_wake() <= until) {
      engine.on_wake(engine.next_wake(), events);
      BOOST_REQUIRE(engine.consistent());
      BOOST_REQUIRE(engine.load().kv_used_blocks <= engine.options().kv_blocks);
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(properties)

BOOST_AUTO_TEST_CASE(every_accepted_request_ends_exactly_once_with_all_its_tokens_in_order) {
  std::size_t preemptions = 0, hits = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Life life(seed);
    std::map<RequestId, int> ends;
    std::map<RequestId, std::uint32_t> tokens;
    Instant last = never_yet;
    for (const Event& e : life.events) {
      BOOST_REQUIRE(e.at >= last);
      last = e.at;
      if (e.kind == EventKind::first_token || e.kind == EventKind::token) {
        BOOST_REQUIRE_EQUAL(++tokens[e.request], e.tokens);
        BOOST_REQUIRE((e.kind == EventKind::first_token) == (e.tokens == 1));
        BOOST_REQUIRE_EQUAL(ends[e.request], 0);
      }
      if (e.kind == EventKind::finished) {
        ++ends[e.request];
        const Request& r = life.accepted.at(e.request);
        BOOST_REQUIRE_EQUAL(e.tokens, std::min(r.output_tokens, r.max_output_tokens));
        BOOST_REQUIRE_EQUAL(e.tokens, tokens[e.request]);
      }
    }
    for (const auto& [id, request] : life.accepted)
      BOOST_REQUIRE_EQUAL(ends[id] + life.cancelled.count(id), 1u);
    BOOST_REQUIRE_EQUAL(life.engine.pool().used_blocks(), 0u);
    const Counters& c = life.engine.counters();
    BOOST_REQUIRE_EQUAL(c.accepted, c.finished_stop + c.finished_length + c.finished_cancelled);
    preemptions += c.preemptions;
    hits += c.prefix_hits;
  }
  BOOST_TEST(preemptions > 100u);  // the lives reach what they are meant to test
  BOOST_TEST(hits > 1000u);
}

BOOST_AUTO_TEST_CASE(reported_blocks_are_what_the_cache_holds) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Life life(seed);
    std::set<BlockHash> held;
    for (const Event& e : life.events) {
      if (e.kind == EventKind::block_stored) BOOST_REQUIRE(held.insert(e.block).second);
      if (e.kind == EventKind::block_removed) BOOST_REQUIRE(held.erase(e.block) == 1);
    }
    BOOST_REQUIRE_EQUAL(held.size(), life.engine.pool().named_blocks());
    for (const BlockHash hash : held) BOOST_REQUIRE(life.engine.pool().find(hash).has_value());
  }
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_life) {
  const Life one(5), two(5), other(6);
  const auto same = [](const Event& a, const Event& b) {
    return a.kind == b.kind && a.at == b.at && a.request == b.request && a.tokens == b.tokens &&
           a.block == b.block;
  };
  BOOST_TEST(std::equal(one.events.begin(), one.events.end(), two.events.begin(), two.events.end(), same));
  BOOST_TEST(
      !std::equal(one.events.begin(), one.events.end(), other.events.begin(), other.events.end(), same));
}

namespace {
/// What the prefix cache should do when requests come one at a time, by linear search over names.
struct NaiveCache {
  std::size_t capacity, block_tokens;
  std::vector<BlockHash> freed = {};  // names, least recently freed first
  std::vector<BlockHash> own = {};    // names of the request's blocks; 0 for nameless ones

  bool freed_has(BlockHash name) const { return std::find(freed.begin(), freed.end(), name) != freed.end(); }
  void hold(std::size_t tokens) {
    while (own.size() * block_tokens < tokens) own.push_back(0);
    while (freed.size() + own.size() > capacity) freed.erase(freed.begin());
  }
  void computed(std::size_t tokens, const std::vector<BlockHash>& blocks, std::size_t& offered) {
    for (; offered < std::min(tokens / block_tokens, blocks.size()); ++offered)
      if (!freed_has(blocks[offered])) own[offered] = blocks[offered];
  }

  std::size_t serve(const std::vector<BlockHash>& blocks, std::size_t prompt, std::size_t answer) {
    std::size_t hits = 0;
    own.clear();
    while (hits < std::min(blocks.size(), (prompt - 1) / block_tokens) && freed_has(blocks[hits])) {
      freed.erase(std::find(freed.begin(), freed.end(), blocks[hits]));
      own.push_back(blocks[hits++]);
    }
    std::size_t offered = hits;
    hold(prompt);
    computed(prompt, blocks, offered);
    for (std::size_t tokens = prompt + 1; tokens < prompt + answer; ++tokens) {
      hold(tokens);
      computed(tokens, blocks, offered);
    }
    for (std::size_t i = own.size(); i-- > 0;)
      if (own[i] != 0) freed.push_back(own[i]);
    return hits * block_tokens;
  }
};
}  // namespace

BOOST_AUTO_TEST_CASE(prefix_reuse_equals_a_naive_oracle) {
  std::size_t hits = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    EngineOptions o = random_options(rng);
    o.prefix_caching = true;
    o.max_waiting = 1;
    Engine engine(o, seed);
    NaiveCache oracle{o.kv_blocks, o.block_tokens};
    for (RequestId id = 1; id <= 60; ++id) {
      Request request = random_request(rng, id, o);
      request.prompt_tokens = std::min(request.prompt_tokens, o.kv_blocks * o.block_tokens / 2);
      request.max_output_tokens = request.output_tokens;
      request.blocks =
          content(rng.below(3), 1 + static_cast<std::uint32_t>(rng.below(9)),
                  (request.prompt_tokens + request.output_tokens) / o.block_tokens, rng.below(3));
      const auto expected = oracle.serve(request.blocks, request.prompt_tokens, request.output_tokens);
      BOOST_REQUIRE((engine.submit(request, instant_at(1h * static_cast<int>(id))) == Admission::accepted));
      BOOST_REQUIRE_EQUAL(run(engine).back().cached_tokens, expected);
      hits += expected;
    }
  }
  BOOST_TEST(hits > 10000u);
}

BOOST_AUTO_TEST_SUITE_END()
