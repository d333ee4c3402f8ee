#include "actors/cluster_router/routing/cache_index.hpp"

#include <algorithm>

#include "messages/base/rng.hpp"

namespace signalbox::routing {

void CacheIndex::resize(std::size_t engines, bool same_rows) {
  if (!same_rows || engines < engines_.size()) {
    engines_.clear();
    nodes_.clear();
    free_.clear();
    pairs_.clear();
    holders_.clear();
  }
  engines_.resize(engines);
  for (std::size_t i = 0; i < engines; ++i) set_depth(EngineIndex(i), engines_[i].depth);
}

void CacheIndex::set_depth(EngineIndex engine, std::size_t blocks) {
  const std::size_t share =
      std::max<std::size_t>(1, most_blocks_ / std::max<std::size_t>(1, engines_.size()));
  engines_[engine.at()].depth = static_cast<std::uint32_t>(std::min(blocks, share));
  while (engines_[engine.at()].size > engines_[engine.at()].depth) drop_oldest(engine);
}

void CacheIndex::sent(EngineIndex engine, std::span<const std::uint64_t> blocks) {
  for (std::size_t i = blocks.size(); i > 0; --i) sent_block(engine, blocks[i - 1]);
}

bool CacheIndex::sent_block(EngineIndex engine, std::uint64_t block) {
  PerEngine& list = engines_[engine.at()];
  if (list.depth == 0) return false;
  if (const std::uint32_t* known = pairs_.find(pair_key(engine, block))) {
    unlink(list, *known);
    put_first(list, *known);
    note_holder(engine, block, false);
    return false;
  }
  if (list.size == list.depth) drop_oldest(engine);
  const std::uint32_t node = new_node();
  nodes_[node].block = block;
  put_first(list, node);
  pairs_.get(pair_key(engine, block)) = node;
  note_holder(engine, block, true);
  return true;
}

void CacheIndex::forget(EngineIndex engine) {
  while (engines_[engine.at()].size > 0) drop_oldest(engine);
}

LongestMatch CacheIndex::longest(std::span<const std::uint64_t> blocks) const {
  LongestMatch match;
  // Invariant: the first `low` blocks are known, those from `high` on are not.
  std::size_t low = 0, high = blocks.size();
  const Holders* best = nullptr;
  for (std::size_t probe = 0; low < high; probe = low + (high - low) / 2) {
    const Holders* here = holders_.find(std::max<std::uint64_t>(1, blocks[probe]));
    if (here != nullptr) {
      best = here;
      low = probe + 1;
    } else {
      high = probe;
    }
  }
  if (best == nullptr) return match;
  match.blocks = low;
  for (const std::uint32_t engine : best->recent)
    if (engine != none) match.holders.push(EngineIndex(engine));
  return match;
}

std::size_t CacheIndex::matched(EngineIndex engine, std::span<const std::uint64_t> blocks) const {
  std::size_t low = 0, high = blocks.size();
  for (std::size_t probe = 0; low < high; probe = low + (high - low) / 2) {
    if (holds(engine, blocks[probe]))
      low = probe + 1;
    else
      high = probe;
  }
  return low;
}

std::size_t CacheIndex::bytes() const {
  return pairs_.bytes() + holders_.bytes() + nodes_.capacity() * sizeof(Node) +
         free_.capacity() * sizeof(std::uint32_t) + engines_.capacity() * sizeof(PerEngine);
}

std::uint64_t CacheIndex::pair_key(EngineIndex engine, std::uint64_t block) {
  return std::max<std::uint64_t>(1, mix64(block + 0x9e3779b97f4a7c15ULL * (engine.value + 1ULL)));
}

void CacheIndex::note_holder(EngineIndex engine, std::uint64_t block, bool is_new) {
  Holders& holders = holders_.get(std::max<std::uint64_t>(1, block));
  if (is_new) ++holders.count;
  auto* const end = std::end(holders.recent);
  auto* place = std::find(std::begin(holders.recent), end, engine.value);
  if (place == end) --place;  // the longest unused leaves
  std::copy_backward(std::begin(holders.recent), place, place + 1);
  holders.recent[0] = engine.value;
}

void CacheIndex::drop_holder(EngineIndex engine, std::uint64_t block) {
  const std::uint64_t key = std::max<std::uint64_t>(1, block);
  Holders* holders = holders_.find(key);
  if (--holders->count == 0) return holders_.erase(key);
  auto* const end = std::end(holders->recent);
  auto* const place = std::find(std::begin(holders->recent), end, engine.value);
  if (place == end) return;
  std::copy(place + 1, end, place);
  *(end - 1) = none;
}

void CacheIndex::unlink(PerEngine& list, std::uint32_t node) {
  const Node& n = nodes_[node];
  (n.newer == none ? list.newest : nodes_[n.newer].older) = n.older;
  (n.older == none ? list.oldest : nodes_[n.older].newer) = n.newer;
  --list.size;
}

void CacheIndex::put_first(PerEngine& list, std::uint32_t node) {
  nodes_[node].newer = none;
  nodes_[node].older = list.newest;
  (list.newest == none ? list.oldest : nodes_[list.newest].newer) = node;
  list.newest = node;
  ++list.size;
}

void CacheIndex::drop_oldest(EngineIndex engine) {
  PerEngine& list = engines_[engine.at()];
  const std::uint32_t node = list.oldest;
  const std::uint64_t block = nodes_[node].block;
  unlink(list, node);
  pairs_.erase(pair_key(engine, block));
  drop_holder(engine, block);
  free_.push_back(node);
}

std::uint32_t CacheIndex::new_node() {
  if (free_.empty()) {
    nodes_.emplace_back();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t node = free_.back();
  free_.pop_back();
  return node;
}

}  // namespace signalbox::routing
