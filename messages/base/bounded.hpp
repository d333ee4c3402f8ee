// Containers whose size is bounded by construction.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace signalbox {

/// A vector of at most N elements that never allocates. push() past the end is refused and returns false.
template <class T, std::size_t N>
class FixedVector {
 public:
  constexpr bool push(T value) {
    if (size_ == N) return false;
    items_[size_++] = std::move(value);
    return true;
  }
  constexpr void pop() { assert(size_ > 0), --size_; }
  constexpr void clear() { size_ = 0; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr bool full() const { return size_ == N; }
  static constexpr std::size_t capacity() { return N; }
  constexpr T& operator[](std::size_t i) { return assert(i < size_), items_[i]; }
  constexpr const T& operator[](std::size_t i) const { return assert(i < size_), items_[i]; }
  constexpr T* begin() { return items_.data(); }
  constexpr T* end() { return items_.data() + size_; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }
  constexpr bool contains(const T& value) const {
    for (const T& item : *this)
      if (item == value) return true;
    return false;
  }

 private:
  std::array<T, N> items_{};
  std::size_t size_ = 0;
};

/// The last `capacity` values, oldest first; pushing to a full ring forgets the oldest. capacity > 0.
template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : items_(capacity) { assert(capacity > 0); }

  void push(T value) {
    items_[(first_ + size_) % items_.size()] = std::move(value);
    if (size_ < items_.size())
      ++size_;
    else
      first_ = (first_ + 1) % items_.size();
  }
  void clear() { first_ = size_ = 0; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t capacity() const { return items_.size(); }
  /// The i-th oldest.
  const T& operator[](std::size_t i) const { return assert(i < size_), items_[(first_ + i) % items_.size()]; }
  T& operator[](std::size_t i) { return assert(i < size_), items_[(first_ + i) % items_.size()]; }
  const T& newest() const { return (*this)[size_ - 1]; }
  const T& oldest() const { return (*this)[0]; }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace signalbox
