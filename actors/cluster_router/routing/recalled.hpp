// The surroundings of a past decision, recalled from its recorded inputs: what decide() asks of loads, penalties and
// caches, with the answers that it got then.
#pragma once

#include <span>
#include <vector>

#include "actors/cluster_router/routing/cache_index.hpp"
#include "actors/cluster_router/routing/load.hpp"
#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::routing {

/// By EngineIndex.
struct RecalledLoads {
  std::vector<OwnLoad> now, then;
  const OwnLoad& own(EngineIndex engine) const { return now[engine.at()]; }
  const OwnLoad& own_at_reading(EngineIndex engine) const { return then[engine.at()]; }
  std::int64_t elsewhere(EngineIndex) const { return 0; }  // recorded as ours
  /// The recorded cap is the one that held then, whoever set it.
  bool full(EngineIndex engine, std::uint32_t cap) const {
    return own(engine).requests >= static_cast<std::int64_t>(cap);
  }
};

struct RecalledPenalties {
  std::vector<double> multipliers;
  double multiplier(EngineIndex engine, Instant) const { return multipliers[engine.at()]; }
};

struct RecalledCache {
  LongestMatch answer;
  std::vector<std::size_t> blocks;
  LongestMatch longest(std::span<const std::uint64_t>) const { return answer; }
  std::size_t matched(EngineIndex engine, std::span<const std::uint64_t>) const {
    return blocks[engine.at()];
  }
};

struct Recalled {
  const View& view;
  const RecalledLoads& loads;
  const RecalledPenalties& penalties;
  const RecalledCache& cache;
};

}  // namespace signalbox::routing
