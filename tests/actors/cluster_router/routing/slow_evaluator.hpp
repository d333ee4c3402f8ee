// The rule of decide() once more, written from its description in straightforward loops over raw inputs, sharing no
// arithmetic with the router. Given which engines were drawn it says which one must be chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/cluster_router/routing/decide.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

/// What was in flight from this router to one engine, as a history.
struct Move {
  Instant when;
  std::size_t engine;
  double requests, prefill, kv;
};

/// Everything that the rule speaks of, unprocessed.
struct RawWorld {
  const Fleet* fleet;
  std::vector<Move> moves;
  std::vector<double> penalties;                ///< by engine, as multipliers
  std::vector<std::set<std::uint64_t>> caches;  ///< by engine, the blocks it holds
};

struct RawAsk {
  std::size_t request_class;
  Criticality criticality;
  double prompt, output, context, mean_uncached, block;
  std::vector<std::uint64_t> blocks;
  std::set<std::size_t> tried;
  std::optional<std::size_t> home, pinned;
  std::set<std::size_t> unnamed = {};  ///< hold the longest part, but the index had named enough others
};

/// Compares a decision with the rule; the answer is empty, or says what is wrong.
std::string disagreement(const RawWorld& world, const RawAsk& ask, Instant now, const Decision& decision);

}  // namespace signalbox::routing::test
