// Where the plan places hot prefixes, looked up by a prompt's blocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "actors/cluster_router/routing/flat_map.hpp"
#include "messages/base/bounded.hpp"
#include "messages/base/ids.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::routing {

inline constexpr std::size_t most_placed = 4;

/// The beginning of a prompt that the plan places, and the engines that it means to hold it: ascending, of many those with the greatest
/// shares. A request that goes to one of them is priced as if it did already: what the first computes serves those who follow.
struct Placed {
  float tokens = 0;
  FixedVector<EngineIndex, most_placed> engines;

  bool contains(EngineIndex engine) const { return tokens > 0 && engines.contains(engine); }
};

class PlacedGroups {
 public:
  PlacedGroups() = default;
  explicit PlacedGroups(const std::vector<schema::GroupRow>& rows) {
    for (std::size_t first = 0; first < rows.size();) {
      std::size_t end = first;
      while (end < rows.size() && rows[end].group == rows[first].group) ++end;
      if (rows[first].group != 0) add({rows.data() + first, end - first});
      first = end;
    }
    std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
    lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
  }

  /// The longest placed beginning of a prompt with these blocks of so many tokens each; none: no engines.
  Placed find(std::span<const std::uint64_t> blocks, float block_tokens) const {
    for (const float tokens : lengths_) {
      const auto depth = static_cast<std::size_t>(std::lround(tokens / block_tokens));
      if (depth == 0 || depth > blocks.size()) continue;
      if (const Placed* found = groups_.find(blocks[depth - 1])) return *found;
    }
    return {};
  }

 private:
  void add(std::span<const schema::GroupRow> rows) {
    std::vector<schema::GroupRow> by_share(rows.begin(), rows.end());
    std::stable_sort(by_share.begin(), by_share.end(),
                     [](const auto& a, const auto& b) { return a.share > b.share; });
    if (by_share.size() > most_placed) by_share.resize(most_placed);
    std::sort(by_share.begin(), by_share.end(),
              [](const auto& a, const auto& b) { return a.engine < b.engine; });
    Placed placed;
    placed.tokens = static_cast<float>(rows.front().prefix_tokens);
    for (const schema::GroupRow& row : by_share) placed.engines.push(row.engine);
    lengths_.push_back(placed.tokens);
    groups_.get(rows.front().group) = placed;
  }

  FlatMap<Placed> groups_;
  std::vector<float> lengths_;  ///< in tokens, the longest first
};

}  // namespace signalbox::routing
