// The parts that a decision rests on, one by one: load, caches, retries, hashes.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <set>

#include "actors/cluster_router/routing/cache_index.hpp"
#include "actors/cluster_router/routing/decide.hpp"
#include "actors/cluster_router/routing/retry.hpp"
#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"
#include "tests/support/sizes.hpp"

namespace signalbox::routing::test {

namespace {

const EngineIndex e0(0);

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_believed_of_an_engine) {
  struct Row {
    const char* name;
    double signal, now, then;
    int routers;
    bool fresh;
    double believed;
  };
  const Row rows[] = {
      {"the reading, less ours then, plus ours now", 10, 5, 2, 1, true, 13},
      {"the others moved like us, a bit", 10, 5, 2, 3, true, 13 + 0.6 * 2 * 3},
      {"ours left, and theirs probably", 10, 0, 4, 2, true, 6 - 0.6 * 4},
      {"never less than ours", 10, 3, 20, 4, true, 3},
      {"the reading misses some of ours", 1, 5, 2, 1, true, 5},
      {"no reading: everybody sends as we do", unknown, 5, 2, 3, true, 15},
      {"an old reading is no reading", 10, 5, 2, 3, false, 15},
  };
  for (const Row& row : rows) {
    EngineFacts facts;
    facts.requests = row.signal;
    const OwnLoad now{static_cast<std::int64_t>(row.now), 0, 0},
        then{static_cast<std::int64_t>(row.then), 0, 0};
    const Belief b = believe(facts, now, then, 0, row.fresh, {100, 150}, row.routers - 1, 0.6);
    BOOST_TEST(std::abs(static_cast<double>(b.requests) - row.believed) < 1e-4, row.name);
  }
}

BOOST_AUTO_TEST_CASE(what_an_engine_is_believed_to_hold) {
  struct Row {
    const char* name;
    double used, waiting;
    std::int64_t now, then;
    int routers;
    bool fresh;
    double believed;
  };
  const Row rows[] = {
      {"the reading, and our moves since", 1000, 0, 500, 300, 1, true, 1200},
      {"the others moved like us, a bit", 1000, 0, 500, 300, 3, true, 1200 + 0.6 * 2 * 200},
      {"what ours share is held once", 1000, 0, 3000, 3000, 1, true, 1000},
      {"what waits will be held", 1000, 4, 500, 500, 1, true, 1000 + 4 * 150},
      {"nobody says what waits", 1000, unknown, 500, 500, 1, true, 1000},
      {"never less than nothing", 100, 0, 0, 500, 1, true, 0},
      {"no reading: everybody holds as much as we", unknown, 0, 500, 300, 3, true, 1500},
      {"an old reading is no reading", 1000, 0, 500, 300, 3, false, 1500},
  };
  for (const Row& row : rows) {
    EngineFacts facts;
    facts.kv_used = row.used;
    facts.waiting = row.waiting;
    const OwnLoad now{0, 0, row.now}, then{0, 0, row.then};
    const Belief b = believe(facts, now, then, 0, row.fresh, {100, 150}, row.routers - 1, 0.6);
    BOOST_TEST(std::abs(static_cast<double>(b.kv_tokens) - row.believed) < 1e-3, row.name);
  }
}

namespace {

/// Seconds that a request of 1,000 tokens costs on an engine of which this is believed.
CostParts cost_with(const Belief& belief) {
  EngineFacts facts;
  facts.a = 0.01, facts.b = 5e-5, facts.k = 2e-8, facts.c = 4e-5;
  Ask ask;
  ask.prompt_tokens = 1000, ask.output_tokens = 300;
  ask.context_tokens = 10000, ask.uncached_tokens = 8000;
  return cost_of(facts, {}, ask, belief, 0, false);
}

}  // namespace

// Long prompts make an engine's steps long, however few they are.
BOOST_AUTO_TEST_CASE(what_an_engine_holds_makes_it_slow_and_not_what_its_requests_usually_hold) {
  const double little = cost_with({20, 0, 200'000}).decode, much = cost_with({20, 0, 1'000'000}).decode;
  BOOST_TEST(much - little == 300 * 2e-8 * 800'000, boost::test_tools::tolerance(1e-9));
  // Where they have that many tokens each, more requests cost but their own part of the step and their prompts.
  const double more = cost_with({21, 0, 200'000}).decode - little;
  BOOST_TEST(more == 300 * 5e-5 + 4e-5 * 8000, boost::test_tools::tolerance(1e-9));
}

// Whoever comes while the prompts that wait are computed is delayed by one more.
BOOST_AUTO_TEST_CASE(prompts_that_wait_raise_the_price_of_more_work) {
  const CostParts idle = cost_with({20, 0, 200'000}), busy = cost_with({20, 100'000, 200'000});
  const double answer_s = 300 * (0.01 + 21 * (5e-5 + 2e-8 * 10'000)), wait_s = 100'000 * 4e-5;
  BOOST_TEST(busy.price == idle.price * (1 + wait_s / answer_s), boost::test_tools::tolerance(1e-6));
  BOOST_TEST(busy.queue - idle.queue == 3 * wait_s, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(the_load_table_knows_what_was_ours_when_a_reading_was_taken) {
  LoadTable loads;
  loads.remap(std::vector<EngineIndex>(1));
  std::vector<Hold> holds;
  for (int i = 1; i <= 10; ++i) holds.push_back(loads.take(e0, {10, 20}, at(i)));
  loads.reading(e0, at(4.5));
  BOOST_TEST(loads.own_at_reading(e0).requests == 4);
  BOOST_TEST(loads.own_at_reading(e0).prefill_tokens == 40);
  loads.reading(e0, at(10.5));
  BOOST_TEST(loads.own_at_reading(e0).requests == 10);
  loads.prefilled(holds[0], at(11));
  loads.prefilled(holds[0], at(11));
  BOOST_TEST(loads.own(e0).prefill_tokens == 90);
  for (Hold& hold : holds) loads.release(hold, at(12));
  for (Hold& hold : holds) loads.release(hold, at(13));  // released once, whoever asks again
  BOOST_TEST((loads.own(e0) == OwnLoad{}));
}

BOOST_AUTO_TEST_CASE(prompts_that_others_sent_wait_until_the_engine_has_computed_them) {
  LoadTable loads;
  loads.remap(std::vector<EngineIndex>(1));
  constexpr double token_s = 1e-4;
  loads.sent_elsewhere(e0, 30'000, token_s, at(1));
  BOOST_TEST(loads.known(e0).prefill_tokens == 30'000);
  BOOST_TEST(loads.own(e0).prefill_tokens == 0);  // what is reported as ours stays ours
  loads.sent_elsewhere(e0, 0, token_s, at(2));
  BOOST_TEST(loads.known(e0).prefill_tokens == 20'000);
  Hold hold = loads.take(e0, {20'000, 20'000}, at(2));
  loads.sent_elsewhere(e0, 0, token_s, at(3));  // theirs and ours in turn
  BOOST_TEST(loads.known(e0).prefill_tokens == 35'000);
  loads.reading(e0, at(3));
  BOOST_TEST(loads.known_at_reading(e0).prefill_tokens == 35'000);
  loads.sent_elsewhere(e0, 0, token_s, at(8));
  BOOST_TEST(loads.known(e0).prefill_tokens == 20'000);
  loads.release(hold, at(8));
}

BOOST_AUTO_TEST_CASE(cache_index_against_a_list) {
  // The plain truth: per engine a list, latest first.
  constexpr std::size_t engines = 5, depth = 40;
  CacheIndex index(engines * depth);
  index.resize(engines, false);
  for (std::size_t e = 0; e < engines; ++e) index.set_depth(EngineIndex(e), 1'000);
  std::vector<std::list<std::uint64_t>> lists(engines);
  const auto use = [&](std::size_t e, std::uint64_t block) {
    lists[e].remove(block);
    lists[e].push_front(block);
    if (lists[e].size() > depth) lists[e].pop_back();
  };
  const auto leading = [&](std::size_t e, const PromptBlocks& prompt) {
    std::size_t n = 0;
    while (n < prompt.size() && std::ranges::count(lists[e], prompt[n]) > 0) ++n;
    return n;
  };
  Rng rng(5);
  const std::uint64_t operations = signalbox::tests::size_of_test("cache_index_against_a_list");
  for (std::uint64_t i = 0; i < operations; ++i) {
    // A tree of prompts: block j depends on the choices up to j.
    PromptBlocks prompt;
    std::uint64_t path = 1;
    for (std::uint64_t j = 0, n = 1 + rng.below(12); j < n; ++j)
      prompt.push_back(path = mix64(path * 4 + rng.below(3)));
    const std::size_t e = rng.below(engines);
    if (rng.chance(0.01)) {
      index.forget(EngineIndex(e));
      lists[e].clear();
    } else if (rng.chance(0.5)) {
      index.sent(EngineIndex(e), prompt);
      for (std::size_t j = prompt.size(); j > 0; --j) use(e, prompt[j - 1]);
    } else {
      const LongestMatch match = index.longest(prompt);
      std::size_t longest = 0, holders = 0;
      for (std::size_t x = 0; x < engines; ++x) {
        longest = std::max(longest, leading(x, prompt));
        BOOST_REQUIRE(index.matched(EngineIndex(x), prompt) == leading(x, prompt));
      }
      for (std::size_t x = 0; x < engines; ++x)
        holders += longest > 0 && leading(x, prompt) == longest ? 1 : 0;
      BOOST_REQUIRE(match.blocks == longest);
      for (const EngineIndex holder : match.holders) BOOST_REQUIRE(leading(holder.at(), prompt) == longest);
      // A list of the latest four may have lost an earlier one for good, never all of few.
      BOOST_REQUIRE(match.holders.size() <= std::min(holders, max_holders));
    }
  }
  std::size_t held = 0;
  for (const auto& list : lists) held += list.size();
  BOOST_TEST(index.blocks() == held);
}

BOOST_AUTO_TEST_CASE(cache_memory_is_bounded_by_its_budget) {
  CacheIndex index(50'000);
  index.resize(10, false);
  for (std::size_t e = 0; e < 10; ++e) index.set_depth(EngineIndex(e), 1'000'000);
  Rng rng(1);
  for (int i = 0; i < 300'000; ++i) index.sent_block(EngineIndex(rng.below(10)), rng.next());
  BOOST_TEST(index.blocks() == 50'000u);
  BOOST_TEST(index.bytes() < 50'000u * 160u);
  BOOST_TEST_MESSAGE("bytes a block, all different: " << index.bytes() / 50'000);
}

BOOST_AUTO_TEST_CASE(prompts_share_hashes_exactly_as_far_as_they_agree) {
  const std::string common(5'000, 'x');
  const std::string a = common + std::string(3'000, 'a'), b = common + std::string(3'000, 'b');
  PromptBlocks one, two, other_tenant;
  hash_prompt_blocks(a, tenant_key(9, "t"), 1'000, one);
  hash_prompt_blocks(b, tenant_key(9, "t"), 1'000, two);
  hash_prompt_blocks(a, tenant_key(9, "u"), 1'000, other_tenant);
  BOOST_REQUIRE(one.size() == 8u);
  for (std::size_t i = 0; i < 8; ++i) BOOST_TEST((one[i] == two[i]) == (i < 5));
  for (std::size_t i = 0; i < 8; ++i) BOOST_TEST(one[i] != other_tenant[i]);
  BOOST_TEST(std::set<std::uint64_t>(one.begin(), one.end()).size() ==
             8u);  // equal blocks in other places differ
  hash_prompt_blocks(std::string(10'000'000, 'y'), 1, 1'000, one);
  BOOST_TEST(one.size() == max_prompt_blocks);
  hash_prompt_blocks(std::string(999, 'y'), 1, 1'000, one);
  BOOST_TEST(one.empty());
}

BOOST_AUTO_TEST_CASE(retries_never_exceed_their_budget) {
  Rng rng(3);
  for (int run = 0; run < 50; ++run) {
    RetryBudget budget;
    const double ratio = rng.uniform(), burst = static_cast<double>(rng.below(60));
    budget.configure(ratio, burst);
    double offered = 0, retries = 0;
    for (int i = 0; i < 2'000; ++i) {
      if (rng.chance(0.5)) {
        budget.first_attempt();
        ++offered;
      } else if (budget.available()) {
        budget.take();
        ++retries;
      }
      BOOST_REQUIRE(retries <= ratio * offered + burst + 1e-6);
    }
  }
}

}  // namespace signalbox::routing::test
