// What decide() costs: nanoseconds per decision at several fleet sizes, as JSON. The batches go through the fleet's
// engines at random, so that large fleets do not sit in the nearest cache.
//
//   bench_decide [decisions per size]
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <vector>

#include "actors/cluster_router/routing/decide.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

namespace {

using Clock = std::chrono::steady_clock;

struct World {
  explicit World(std::size_t engines) : cache(262'144) {
    Fleet fleet;
    fleet.engines(engines).request_class("t", Criticality::standard);
    fleet.weights(ClassIndex(0), std::vector<double>(engines, 1.0 / static_cast<double>(engines)));
    for (std::size_t e = 0; e < engines; ++e) {
      fleet.price(EngineIndex(e), 500, 0.6, 0.85);
      fleet.signal(EngineIndex(e), at(0.5), static_cast<double>(e % 50), 1, 0.3);
    }
    fleet.routers = 2;
    view = fleet.view();
    const std::vector<EngineIndex> fresh(engines);
    loads.remap(fresh);
    penalties.configure(view->policy->penalty);
    penalties.remap(fresh);
    cache.resize(engines, false);
    for (std::size_t e = 0; e < engines; ++e) cache.set_depth(EngineIndex(e), 300);
  }
  Surroundings around() const { return {*view, loads, penalties, cache}; }

  std::shared_ptr<const View> view;
  LoadTable loads;
  Penalties penalties;
  CacheIndex cache;
};

struct Figures {
  double median, p99;
};

/// Per decision, from the times of batches of 16: one reading of the clock costs too much for one decision.
template <class Act>
Figures measure(std::size_t decisions, Act&& act) {
  constexpr std::size_t batch = 16;
  std::vector<double> ns;
  for (std::size_t i = 0; i < decisions / batch; ++i) {
    const auto start = Clock::now();
    for (std::size_t j = 0; j < batch; ++j) act(i * batch + j);
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / batch);
  }
  std::sort(ns.begin(), ns.end());
  return {ns[ns.size() / 2], ns[ns.size() * 99 / 100]};
}

void run(std::size_t engines, std::size_t decisions, bool last) {
  World world(engines);
  Ask ask;
  ask.request_class = ClassIndex(0);
  ask.prompt_tokens = 8'000;
  ask.uncached_tokens = 4'000;
  ask.context_tokens = 8'100;
  Decision decision;
  std::uint64_t sink = 0;
  const auto decide_one = [&](std::size_t i) {
    Rng rng(i);
    decide(world.around(), ask, {}, at(1), rng, decision);
    sink += decision.engine.value;
  };
  const Figures plain = measure(decisions, decide_one);

  // 64 prompts of 32 blocks (32 KB) that share a head of 4, each at two engines; every request extends one by a block.
  std::vector<PromptBlocks> prompts(64);
  Rng rng(7);
  for (PromptBlocks& prompt : prompts) {
    for (std::uint64_t j = 0; j < 31; ++j) prompt.push_back(j < 4 ? mix64(j + 1) : rng.next());
    for (int n = 0; n < 2; ++n) world.cache.sent(EngineIndex(rng.below(engines)), prompt);
    prompt.push_back(rng.next());
  }
  const Figures lookup =
      measure(decisions, [&](std::size_t i) { sink += world.cache.longest(prompts[i % 64]).blocks; });
  const Figures cached = measure(decisions, [&](std::size_t i) {
    ask.blocks = prompts[i % 64];
    decide_one(i);
  });

  const std::string text(32 * 1024, 'x');
  PromptBlocks blocks;
  const Figures hashing = measure(decisions / 16, [&](std::size_t i) {
    hash_prompt_blocks(text, i, default_block_bytes, blocks);
    sink += blocks.back();
  });
  fmt::print(
      "  {{\"engines\": {}, \"decide_ns\": {:.0f}, \"decide_p99_ns\": {:.0f}, \"lookup_32kb_ns\": {:.0f}, "
      "\"decide_with_prefix_32kb_ns\": {:.0f}, \"hash_32kb_ns\": {:.0f}, \"check\": {}}}{}\n",
      engines, plain.median, plain.p99, lookup.median, cached.median, hashing.median, sink % 1000,
      last ? "" : ",");
}

}  // namespace

}  // namespace signalbox::routing::test

int main(int argc, char** argv) {
  std::size_t decisions = 400'000;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), decisions);
    if (parsed.ec != std::errc{} || decisions < 1'600) {
      fmt::print(stderr, "bench_decide: '{}' is no number of decisions; give 1600 or more\n", text);
      return 2;
    }
  }
  fmt::print("[\n");
  for (const std::size_t engines : {10u, 100u, 1'000u, 10'000u})
    signalbox::routing::test::run(engines, decisions, engines == 10'000u);
  fmt::print("]\n");
  return 0;
}
