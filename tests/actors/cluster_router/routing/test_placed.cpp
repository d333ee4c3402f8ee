// Hot prefixes: which beginnings are found, and what the plan's word on them does to a decision.
#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/routing/hot_prefixes.hpp"
#include "actors/cluster_router/routing/past_decision.hpp"
#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

namespace {

constexpr double block_tokens = default_block_bytes / bytes_per_token;

/// `shared` blocks of this beginning, then blocks of its own.
PromptBlocks prompt(std::uint64_t beginning, std::size_t shared, std::uint64_t own, std::size_t more = 4) {
  PromptBlocks out;
  for (std::size_t i = 0; i < shared; ++i) out.push_back(mix64(beginning * 1000 + i));
  for (std::size_t i = 0; i < more; ++i) out.push_back(mix64(mix64(own) + i));
  return out;
}

schema::GroupRow held(ClassIndex c, const PromptBlocks& blocks, std::size_t depth, EngineIndex on,
                      double share) {
  return {c, blocks[depth - 1], static_cast<double>(depth) * block_tokens, on, share, 1, 0};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_shared_beginning_is_found_to_its_end_and_others_are_not) {
  HotPrefixes hot;
  for (std::uint64_t i = 0; i < 400; ++i) {
    hot.saw(ClassIndex(0), prompt(1, 6, i));
    hot.saw(ClassIndex(0), prompt(1000 + i, 6, i));  // nobody else's
  }
  hot.drain(block_tokens, at(1));
  for (std::uint64_t i = 0; i < 10; ++i) hot.saw(ClassIndex(0), prompt(1, 6, 5000 + i));
  const auto rows = hot.drain(block_tokens, at(2));
  BOOST_REQUIRE(rows.size() == 1u);
  BOOST_TEST(rows[0].group == prompt(1, 6, 0)[5]);
  BOOST_TEST(rows[0].prefix_tokens == 6 * block_tokens);
  BOOST_TEST(rows[0].requests == 10u);
  BOOST_TEST(hot.drain(block_tokens, at(3)).empty());
}

BOOST_AUTO_TEST_CASE(a_request_counts_for_the_longest_hot_beginning) {
  HotPrefixes hot;
  const auto come = [&](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      hot.saw(ClassIndex(0), prompt(1, 3, 7, 3));     // all of one application
      hot.saw(ClassIndex(0), prompt(1, 3, 100 + i));  // the same system prompt, then anything
    }
  };
  come(300);
  hot.drain(block_tokens, at(1));
  come(10);
  const auto rows = hot.drain(block_tokens, at(2));
  BOOST_REQUIRE(rows.size() == 2u);
  for (const auto& row : rows) BOOST_TEST(row.requests == 10u);
  BOOST_TEST(rows[0].prefix_tokens + rows[1].prefix_tokens == (3 + 6) * block_tokens);
}

BOOST_AUTO_TEST_CASE(what_is_no_longer_asked_for_is_forgotten_and_memory_is_bounded) {
  HotPrefixes hot;
  for (std::uint64_t i = 0; i < 100'000; ++i) hot.saw(ClassIndex(0), prompt(i, 6, i));
  BOOST_TEST(hot.size() == HotPrefixes::most_blocks);
  for (int s = 0; s < 200; s += 31) hot.drain(block_tokens, at(s));
  BOOST_TEST(hot.size() == 0u);
}

BOOST_AUTO_TEST_CASE(the_longest_placed_beginning_is_looked_up) {
  const PromptBlocks blocks = prompt(1, 8, 2);
  const PlacedGroups groups({held(ClassIndex(0), blocks, 2, EngineIndex(3), 1),
                             held(ClassIndex(0), blocks, 6, EngineIndex(1), 0.4),
                             held(ClassIndex(0), blocks, 6, EngineIndex(2), 0.6)});
  const auto first = [&](std::size_t n) { return std::span(blocks).first(n); };
  BOOST_TEST(groups.find(first(1), block_tokens).engines.empty());
  BOOST_TEST(groups.find(first(5), block_tokens).contains(EngineIndex(3)));
  const Placed longest = groups.find(blocks, block_tokens);
  BOOST_TEST(longest.tokens == 6 * block_tokens);
  BOOST_TEST(longest.contains(EngineIndex(1)));
  BOOST_TEST(longest.contains(EngineIndex(2)));
  BOOST_TEST(!longest.contains(EngineIndex(3)));
  BOOST_TEST(PlacedGroups().find(blocks, block_tokens).engines.empty());
}

BOOST_AUTO_TEST_CASE(a_request_goes_where_the_plan_holds_its_prefix_unless_that_engine_is_busy) {
  for (const double running : {0.0, 200.0}) {
    Fleet fleet;
    const ClassIndex c = fleet.engines(40).request_class("t", Criticality::standard);
    const PromptBlocks blocks = prompt(1, 16, 2);
    const EngineIndex holder(31);
    fleet.weights(c, std::vector<double>(40, 1.0 / 40));
    fleet.plan().groups = {held(c, blocks, 16, holder, 1)};
    for (std::size_t e = 0; e < 40; ++e) fleet.signal(EngineIndex(e), at(0), 0, 0, 0);
    fleet.signal(holder, at(0), running, 0, 0.5);
    Dispatcher dispatcher(options());
    dispatcher.adopt(fleet.view(), at(0));
    RequestFacts facts = request("t", blocks.size() * default_block_bytes);
    facts.blocks = blocks;
    const auto record = dispatcher.would_decide(facts, at(1));
    BOOST_TEST((record.engine == holder) == (running == 0), "running " << running);
    facts.blocks = prompt(2, 16, 2);
    const auto other = dispatcher.would_decide(facts, at(1));
    for (const auto& row : other.candidates)
      if (row.engine == holder) BOOST_TEST(row.matched_tokens == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_decision_on_a_placed_prefix_is_decided_again_alike) {
  Fleet fleet;
  const ClassIndex c = fleet.engines(12).request_class("t", Criticality::standard);
  fleet.weights(c, std::vector<double>(12, 1.0 / 12));
  const PromptBlocks blocks = prompt(1, 10, 2);
  fleet.plan().groups = {held(c, blocks, 6, EngineIndex(4), 0.5), held(c, blocks, 6, EngineIndex(9), 0.5)};
  const auto view = fleet.view();
  LoadTable loads;
  loads.remap(std::vector<EngineIndex>(12));
  Penalties penalties;
  penalties.remap(std::vector<EngineIndex>(12));
  CacheIndex cache(10'000);
  cache.resize(12, false);
  for (std::size_t e = 0; e < 12; ++e) cache.set_depth(EngineIndex(e), 500);
  cache.sent(EngineIndex(2), std::span(blocks).first(8));
  cache.sent(EngineIndex(9), std::span(blocks).first(3));
  const Surroundings around{*view, loads, penalties, cache};
  Ask ask;
  ask.request_class = c;
  ask.prompt_tokens = static_cast<float>(blocks.size() * block_tokens);
  ask.blocks = blocks;
  ask.block_tokens = static_cast<float>(block_tokens);
  ask.placed = view->plan->groups.find(blocks, ask.block_tokens);
  std::size_t placed = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    Decision now;
    decide(around, ask, {}, at(1), rng, now);
    const auto past = PastDecision::recall(inputs_of(around, ask, {}, at(1), seed, now), view->policy);
    BOOST_REQUIRE(past.has_value());
    const Decision again = past->decide();
    BOOST_TEST((again.engine == now.engine));
    BOOST_TEST(again.count == now.count);
    for (const Candidate& candidate : now.considered())
      placed += candidate.engine == EngineIndex(4) && candidate.matched_tokens == 6 * block_tokens;
  }
  BOOST_TEST(placed == 50u);
}

}  // namespace signalbox::routing::test
