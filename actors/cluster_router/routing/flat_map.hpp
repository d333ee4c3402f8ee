// A hash map from 64-bit keys in one array: linear probing, and deletion by shifting back, so that it never fills with
// tombstones. Keys are hashes already (0 is kept free as the mark of an empty cell).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace signalbox::routing {

template <class Value>
class FlatMap {
 public:
  const Value* find(std::uint64_t key) const {
    if (cells_.empty()) return nullptr;
    for (std::size_t i = home(key);; i = (i + 1) & mask()) {
      if (cells_[i].key == key) return &cells_[i].value;
      if (cells_[i].key == 0) return nullptr;
    }
  }
  Value* find(std::uint64_t key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

  /// The value of `key` (not 0), made if there was none. Invalidates pointers.
  Value& get(std::uint64_t key) {
    if (4 * (size_ + 1) > 3 * cells_.size()) grow();
    std::size_t i = home(key);
    for (; cells_[i].key != 0; i = (i + 1) & mask())
      if (cells_[i].key == key) return cells_[i].value;
    cells_[i] = {key, Value{}};
    ++size_;
    return cells_[i].value;
  }

  void erase(std::uint64_t key) {
    if (cells_.empty()) return;
    std::size_t hole = home(key);
    for (; cells_[hole].key != key; hole = (hole + 1) & mask())
      if (cells_[hole].key == 0) return;
    --size_;
    // Whoever was pushed past the hole moves back into it.
    for (std::size_t i = (hole + 1) & mask(); cells_[i].key != 0; i = (i + 1) & mask()) {
      if (((i - home(cells_[i].key)) & mask()) < ((i - hole) & mask())) continue;
      cells_[hole] = std::move(cells_[i]);
      hole = i;
    }
    cells_[hole] = Cell{};
  }

  /// Room for so many without another allocation.
  void reserve(std::size_t values) {
    while (3 * cells_.size() < 4 * (values + 1)) grow();
  }
  void clear() { cells_.clear(), size_ = 0; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return cells_.size() * sizeof(Cell); }

 private:
  struct Cell {
    std::uint64_t key = 0;
    Value value{};
  };
  std::size_t mask() const { return cells_.size() - 1; }
  /// Multiplicative (Fibonacci) hashing: keys come from the network and may share their low bits.
  std::size_t home(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15ULL) >> shift_; }
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 64 : 2 * cells_.size());
    old.swap(cells_);
    shift_ = 65 - static_cast<unsigned>(std::bit_width(cells_.size()));
    size_ = 0;
    for (Cell& cell : old)
      if (cell.key != 0) get(cell.key) = std::move(cell.value);
  }

  std::vector<Cell> cells_;
  std::size_t size_ = 0;
  unsigned shift_ = 64;
};

}  // namespace signalbox::routing
