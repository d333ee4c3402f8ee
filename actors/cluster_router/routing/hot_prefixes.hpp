// Which beginnings many prompts of a class share. Counted from the first block on, and a further one only once all before it are hot:
// a prompt costs one look more than it has hot blocks, and what nobody shares is never remembered beyond its first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/cluster_router/routing/flat_map.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

class HotPrefixes {
 public:
  static constexpr std::size_t most_blocks =
      4096;  ///< remembered; when full, none is added until some are forgotten
  static constexpr double hot_share = 0.05;       ///< of its class's recent requests
  static constexpr double least_requests = 20;    ///< recent ones, that make a block hot
  static constexpr std::size_t least_depth = 2;   ///< blocks: less is not worth a plan
  static constexpr std::size_t most_groups = 64;  ///< in one batch, the most asked for
  static constexpr Duration half_life = 30s;

  /// A request of this class came with these blocks.
  void saw(ClassIndex request_class, std::span<const std::uint64_t> blocks);
  /// The requests since the last call by the longest hot beginning of each. `block_tokens`: of one block.
  std::vector<schema::HotGroupRow> drain(double block_tokens, Instant now);
  /// The classes have changed.
  void clear();
  std::size_t size() const { return blocks_.size(); }

 private:
  struct Block {
    float recent = 0;  ///< requests that begin with it, halved every half-life
    std::uint32_t depth = 0;
    std::uint32_t requests = 0;  ///< whose longest hot beginning this is, since the last drain
    ClassIndex request_class;
  };
  void forget(Instant now);

  FlatMap<Block> blocks_;
  std::vector<std::uint64_t> known_;    ///< keys of blocks_
  std::vector<std::uint64_t> touched_;  ///< of these, those with requests since the last drain
  std::vector<double> recent_;          ///< requests by ClassIndex, halved alike
  Instant halved_at_ = never_yet;
};

}  // namespace signalbox::routing
