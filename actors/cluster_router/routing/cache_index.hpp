// Which prompt blocks each engine is believed to hold: what was sent there last, by this router and by the others.
//
// Per engine a list of blocks from the last used to the longest unused, as deep as 1.5 times its KV memory (measured:
// shallower loses hits, deeper gains nothing). The head of a prompt is always used after its tail, so that what an
// engine holds of a prompt is a prefix of it, and a binary search finds its end.
//
// Refused alternative: a radix tree of prompts per engine. Its memory follows the text, it needs locks to be shared,
// and gossiped trees grew to gigabytes elsewhere; hashes cost 8 bytes on the bus.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/cluster_router/routing/flat_map.hpp"
#include "messages/base/bounded.hpp"
#include "messages/base/ids.hpp"

namespace signalbox::routing {

inline constexpr std::size_t max_holders = 4;

/// The engines that hold the longest known part of a prompt: the most recent ones, if many do. There is room for as many that are
/// meant to hold a part of it.
struct LongestMatch {
  std::size_t blocks = 0;  ///< 0: no engine is known to hold even the first
  FixedVector<EngineIndex, 2 * max_holders> holders;
};

class CacheIndex {
 public:
  /// At most `most_blocks` (> 0) in all, shared out evenly over the engines.
  explicit CacheIndex(std::size_t most_blocks) : most_blocks_(most_blocks) {}

  /// A fleet of this size; forgets everything unless the old fleet is a prefix of it.
  void resize(std::size_t engines, bool same_rows);
  /// How many blocks this engine may be believed to hold; within the share of the bound.
  void set_depth(EngineIndex engine, std::size_t blocks);
  /// The prompt with these chained blocks was sent to the engine.
  void sent(EngineIndex engine, std::span<const std::uint64_t> blocks);
  /// One block as another router reports it, in the order of its report. Whether the engine must have computed it.
  bool sent_block(EngineIndex engine, std::uint64_t block);
  /// The engine was restarted or emptied.
  void forget(EngineIndex engine);

  LongestMatch longest(std::span<const std::uint64_t> blocks) const;
  /// How many leading blocks of `blocks` this engine is believed to hold.
  std::size_t matched(EngineIndex engine, std::span<const std::uint64_t> blocks) const;

  std::size_t blocks() const { return pairs_.size(); }
  std::size_t blocks_of(EngineIndex engine) const { return engines_[engine.at()].size; }
  std::size_t bytes() const;

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Node {
    std::uint64_t block = 0;
    std::uint32_t newer = none;
    std::uint32_t older = none;
  };
  struct PerEngine {
    std::uint32_t newest = none;
    std::uint32_t oldest = none;
    std::uint32_t size = 0;
    std::uint32_t depth = 0;
  };
  /// Who holds a block: how many, and the latest few of them.
  struct Holders {
    std::uint32_t count = 0;
    std::uint32_t recent[max_holders] = {none, none, none, none};
  };

  static std::uint64_t pair_key(EngineIndex engine, std::uint64_t block);
  bool holds(EngineIndex engine, std::uint64_t block) const {
    return pairs_.find(pair_key(engine, block)) != nullptr;
  }
  void note_holder(EngineIndex engine, std::uint64_t block, bool is_new);
  void drop_holder(EngineIndex engine, std::uint64_t block);
  void unlink(PerEngine& list, std::uint32_t node);
  void put_first(PerEngine& list, std::uint32_t node);
  void drop_oldest(EngineIndex engine);
  std::uint32_t new_node();

  std::size_t most_blocks_;
  std::vector<PerEngine> engines_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  FlatMap<std::uint32_t> pairs_;  ///< (engine, block) to its node
  FlatMap<Holders> holders_;      ///< by block
};

}  // namespace signalbox::routing
