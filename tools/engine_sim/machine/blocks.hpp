// KV memory in blocks of fixed size. A block is referenced by the sequences that use it, or free; a free
// block keeps its content, findable by its hash, until it is taken for something else (least recently freed
// first).
//
//     free list:  [no content ...] [least recently freed ... most recently freed]  -> taken from the left
//
// Every operation takes constant time: the free list is linked through the blocks themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace signalbox::engine_sim {

/// The content of a block and of all blocks before it: a chained hash. 0 means "not known".
using BlockHash = std::uint64_t;
using BlockId = std::uint32_t;

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks);

  /// The block that holds this content, referenced or free.
  std::optional<BlockId> find(BlockHash hash) const;
  /// Takes a free block, forgetting its content, with one reference. Precondition: free_blocks() > 0.
  /// Returns the content that was evicted for it, or 0, in `evicted`.
  BlockId take(BlockHash& evicted);
  /// One reference more; a free block leaves the free list with its content.
  void share(BlockId id);
  /// One reference less; at none the block is free.
  void release(BlockId id);
  /// Names the content of a referenced block. False when another block already has that name: the block stays
  /// nameless.
  bool name(BlockId id, BlockHash hash);

  /// No content can be found any more; blocks in use stay in use. How many there were.
  std::size_t forget_all();

  bool is_free(BlockId id) const { return blocks_[id].references == 0; }
  std::uint32_t free_blocks() const { return free_; }
  std::uint32_t used_blocks() const { return total() - free_; }
  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size() - 1); }
  std::size_t named_blocks() const { return by_hash_.size(); }

  /// For tests: walks everything; false when links, counts and names disagree.
  bool consistent() const;

 private:
  struct Block {
    BlockHash hash = 0;
    std::uint32_t references = 0;
    BlockId previous = 0, next = 0;  ///< neighbours in the free list
  };
  void unlink(BlockId id);
  void link_after(BlockId id, BlockId position);

  // The last element is the sentinel of the circular free list.
  std::vector<Block> blocks_;
  std::unordered_map<BlockHash, BlockId> by_hash_;
  std::uint32_t free_ = 0;
  BlockId sentinel() const { return static_cast<BlockId>(blocks_.size() - 1); }
};

}  // namespace signalbox::engine_sim
