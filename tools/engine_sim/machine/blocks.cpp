#include "tools/engine_sim/machine/blocks.hpp"

#include <cassert>

namespace signalbox::engine_sim {

BlockPool::BlockPool(std::uint32_t blocks) : blocks_(blocks + 1) {
  blocks_[sentinel()].previous = blocks_[sentinel()].next = sentinel();
  by_hash_.reserve(blocks);
  for (BlockId id = 0; id < blocks; ++id) link_after(id, blocks_[sentinel()].previous);
  free_ = blocks;
}

std::optional<BlockId> BlockPool::find(BlockHash hash) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return std::nullopt;
  return found->second;
}

BlockId BlockPool::take(BlockHash& evicted) {
  assert(free_ > 0);
  const BlockId id = blocks_[sentinel()].next;
  unlink(id);
  --free_;
  evicted = blocks_[id].hash;
  if (evicted != 0) by_hash_.erase(evicted);
  blocks_[id].hash = 0;
  blocks_[id].references = 1;
  return id;
}

void BlockPool::share(BlockId id) {
  if (blocks_[id].references++ > 0) return;
  unlink(id);
  --free_;
}

void BlockPool::release(BlockId id) {
  assert(blocks_[id].references > 0);
  if (--blocks_[id].references > 0) return;
  const bool nameless = blocks_[id].hash == 0;
  link_after(id, nameless ? sentinel() : blocks_[sentinel()].previous);
  ++free_;
}

bool BlockPool::name(BlockId id, BlockHash hash) {
  assert(blocks_[id].references > 0 && blocks_[id].hash == 0 && hash != 0);
  if (!by_hash_.try_emplace(hash, id).second) return false;
  blocks_[id].hash = hash;
  return true;
}

std::size_t BlockPool::forget_all() {
  const std::size_t named = by_hash_.size();
  by_hash_.clear();
  for (Block& block : blocks_) block.hash = 0;
  return named;
}

void BlockPool::unlink(BlockId id) {
  Block& block = blocks_[id];
  blocks_[block.previous].next = block.next;
  blocks_[block.next].previous = block.previous;
}

void BlockPool::link_after(BlockId id, BlockId position) {
  const BlockId after = blocks_[position].next;
  blocks_[id].previous = position;
  blocks_[id].next = after;
  blocks_[position].next = id;
  blocks_[after].previous = id;
}

bool BlockPool::consistent() const {
  std::uint32_t listed = 0;
  for (BlockId id = blocks_[sentinel()].next; id != sentinel(); id = blocks_[id].next) {
    if (!is_free(id) || blocks_[blocks_[id].next].previous != id || ++listed > total()) return false;
  }
  std::size_t named = 0;
  std::uint32_t unreferenced = 0;
  for (BlockId id = 0; id < total(); ++id) {
    unreferenced += is_free(id);
    if (blocks_[id].hash == 0) continue;
    ++named;
    if (find(blocks_[id].hash) != id) return false;
  }
  return listed == free_ && unreferenced == free_ && named == by_hash_.size();
}

}  // namespace signalbox::engine_sim
