#include "tools/bench/decide/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "actors/cluster_router/routing/decide.hpp"
#include "actors/cluster_router/routing/request.hpp"

namespace signalbox::bench {

using namespace routing;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t cache_blocks = 262'144;

/// A fleet under a plan that spreads one class evenly over all engines, each with a fresh reading.
struct World {
  explicit World(std::size_t engines) : cache(cache_blocks) {
    auto policy = std::make_shared<policy::CompiledPolicy>();
    policy->models.push_back({ModelName("m"), {}});
    policy::ClassRow row;
    row.name = ClassName("t");
    row.model = ModelIndex(0);
    row.tenants = {{"t", false}};
    row.criticality = Criticality::standard;
    policy->classes.push_back(row);
    policy->hash = digest_of("policy");
    policy->index();
    auto table = std::make_shared<schema::FleetTable>();
    table->clusters.push_back({ClusterName("here"), DomainName("r1"), DomainName("z1")});
    table->content = digest_of("table");
    auto snapshot = std::make_shared<schema::RoutingSnapshot>();
    snapshot->cluster = table->clusters[0].name;
    snapshot->policy = policy->hash;
    snapshot->table = table->content;
    snapshot->version = {{1, ProcessName("o1")}, 1};
    ViewInputs inputs;
    std::vector<schema::EngineSignal> signals(engines);
    for (std::size_t e = 0; e < engines; ++e) {
      add_engine(*table, e);
      snapshot->weights.push_back({ClassIndex(0), EngineIndex(e), 1.0 / static_cast<double>(engines), 0});
      snapshot->prices.push_back({EngineIndex(e), 500, 0.6, 0.85, 1, schema::Binding::none});
      signals[e].running = static_cast<double>(e % 50);
      signals[e].waiting = 1;
      signals[e].kv_usage = 0.3;
      inputs.engines.emplace_back();
      inputs.engines.back().signal = &signals[e];
      inputs.engines.back().signal_at = instant_at(500ms);
    }
    inputs.cluster = table->clusters[0].name;
    inputs.policy = policy;
    inputs.table = table;
    inputs.snapshot = snapshot;
    inputs.as_of = instant_at(Duration::zero());
    inputs.routers = 2;
    auto built = build_view(inputs, nullptr);
    if (!built) throw std::runtime_error(built.error().detail);
    view = *built;
    const std::vector<EngineIndex> fresh(engines);
    loads.remap(fresh);
    penalties.configure(view->policy->penalty);
    penalties.remap(fresh);
    cache.resize(engines, false);
    for (std::size_t e = 0; e < engines; ++e) cache.set_depth(EngineIndex(e), 300);
  }
  Surroundings around() const { return {*view, loads, penalties, cache}; }

  static void add_engine(schema::FleetTable& table, std::size_t number) {
    schema::EngineRow row;
    row.name = EngineName(fmt::format("e{}", number));
    row.cluster = ClusterIndex(0);
    row.models = {ModelName("m")};
    row.step_s = 0.02;
    row.per_sequence_s = 0.0005;
    row.per_context_token_s = 1e-8;
    row.per_prefill_token_s = 0.0001;
    row.kv_tokens = 200'000;
    row.max_batch = 256;
    table.engines.push_back(row);
  }

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

Ask usual_ask() {
  Ask ask;
  ask.request_class = ClassIndex(0);
  ask.prompt_tokens = 8'000;
  ask.uncached_tokens = 4'000;
  ask.context_tokens = 8'100;
  return ask;
}

void run(std::size_t engines, std::size_t decisions, bool last) {
  World world(engines);
  Ask ask = usual_ask();
  Decision decision;
  std::uint64_t sink = 0;
  const auto decide_one = [&](std::size_t i) {
    Rng rng(i);
    decide(world.around(), ask, {}, instant_at(1s), rng, decision);
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

std::uint64_t decide_often(std::size_t engines, std::size_t times) {
  const World world(engines);
  const Ask ask = usual_ask();
  Decision decision;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < times; ++i) {
    Rng rng(i);
    decide(world.around(), ask, {}, instant_at(1s), rng, decision);
    sum += decision.engine.value;
  }
  return sum;
}

void bench_decide(std::size_t decisions) {
  fmt::print("[\n");
  for (const std::size_t engines : {10u, 100u, 1'000u, 10'000u}) run(engines, decisions, engines == 10'000u);
  fmt::print("]\n");
}

}  // namespace signalbox::bench
