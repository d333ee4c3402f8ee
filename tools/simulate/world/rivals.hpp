// Other routers' rules, to compare with: which engine they would send a request to. Written from their published descriptions,
// with their default constants, and given more than they have: what engines tell is up to date, and indices are exact.
//
//   least request   the fewest requests in flight from this router
//   P2C             the same of two drawn at random
//   sglang          cache_aware: the longest match in this router's own record of prompts, if it is over 0.3 of the prompt; else the
//                   engine with the smallest record. When the most and the least loaded differ by over 64 requests and 1.5 times:
//                   the least loaded. Load is this router's own.
//   llm-d           the highest of 3 * matched share of the prompt + 2 * (most - queue) / (most - least) + 2 * (1 - share of KV used);
//                   the match by the engine's own blocks
//   Dynamo          the least of overlap * (prompt tokens to compute, waiting ones included) / block + blocks in use with this one's;
//                   the match by the engine's own blocks, what waits counted by all routers together
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "actors/cluster_router/routing/cache_index.hpp"
#include "messages/base/rng.hpp"
#include "tools/simulate/world/engine_host.hpp"
#include "tools/simulate/world/scenario.hpp"

namespace signalbox::simulate {

/// One request, as a rival's rule sees it.
struct Question {
  double prompt_tokens = 0;
  std::span<const EngineIndex> engines;             ///< that serve its model and are up; not empty
  std::span<const std::uint64_t> prompt_blocks;     ///< as the routers hash them
  const std::vector<std::uint64_t>& engine_blocks;  ///< as the engines do
};

class Rivals {
 public:
  using EngineAt = std::function<const EngineHost&(EngineIndex)>;

  Rivals(RoutingRule rule, std::size_t engines, EngineAt engine, std::uint64_t seed);

  EngineIndex choose(std::size_t router, const Question& question);
  /// What was chosen is on its way. Returns the prompt tokens that the engine must compute for it.
  double sent(std::size_t router, EngineIndex engine, const Question& question);
  /// Its first byte came, or it ended without one; `uncached_tokens` as sent() told.
  void prefilled(EngineIndex engine, double uncached_tokens) {
    waiting_tokens_[engine.at()] -= uncached_tokens;
  }
  void ended(std::size_t router, EngineIndex engine) { --own_[router][engine.at()]; }

 private:
  /// Prompt tokens that this engine would have to compute now.
  double uncached(EngineIndex engine, const Question& question) const;
  static constexpr std::size_t most_record_blocks = 1 << 22;
  void know(std::size_t router);
  EngineIndex fewest(std::size_t router, std::span<const EngineIndex> of);
  EngineIndex two_choices(std::size_t router, std::span<const EngineIndex> of);
  EngineIndex by_record(std::size_t router, const Question& question);
  /// The least cost, ties by the generator.
  EngineIndex least(std::span<const EngineIndex> of, const std::function<double(EngineIndex)>& cost);

  RoutingRule rule_;
  std::size_t engines_;
  EngineAt engine_;
  Rng rng_;
  std::vector<std::vector<std::int64_t>> own_;  ///< in flight, by router and engine
  std::vector<routing::CacheIndex> records_;    ///< by router: what it sent where
  std::vector<double> waiting_tokens_;          ///< by engine: prompt tokens sent there, no first byte yet
};

}  // namespace signalbox::simulate
