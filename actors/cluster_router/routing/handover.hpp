// The two places where an event loop meets the rest: a view swapped in, batches handed out. Both are wait-free and for
// one writer and one reader, so that neither side can hold up the other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::routing {

/// A bounded queue from one thread to one other. A full queue refuses; the writer counts what it dropped.
template <class T>
class SpscQueue {
 public:
  /// Holds at least `capacity` (> 0) items.
  explicit SpscQueue(std::size_t capacity) : items_(round_up(capacity)) {}

  /// Writer only. False, and `item` untouched, when full.
  bool push(T&& item) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ == items_.size()) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ == items_.size()) return false;
    }
    items_[tail & (items_.size() - 1)] = std::move(item);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  /// Reader only.
  std::optional<T> pop() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    std::optional<T> item(std::exchange(items_[head & (items_.size() - 1)], T{}));
    head_.store(head + 1, std::memory_order_release);
    return item;
  }
  std::size_t capacity() const { return items_.size(); }

 private:
  static std::size_t round_up(std::size_t n) {
    std::size_t power = 1;
    while (power < n) power *= 2;
    return power;
  }
  std::vector<T> items_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t head_seen_ = 0;  ///< the writer's last look at head_
};

/// A bounded queue of plain values from one thread to one other. Its memory is taken from the system as it is first used: a
/// queue that stays empty costs nothing.
template <class T>
class PlainQueue {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// `capacity`: a power of two.
  explicit PlainQueue(std::size_t capacity)
      : capacity_(capacity), bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity * sizeof(T))) {}

  /// Writer only. False when full; that is counted.
  bool push(const T& item) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ == capacity_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ == capacity_) {
        dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return false;
      }
    }
    std::memcpy(place(tail), &item, sizeof(T));
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  /// Reader only. Appends all that is here.
  void take(std::vector<T>& out) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    const std::size_t tail = tail_.load(std::memory_order_acquire);
    for (std::size_t at = head; at != tail; ++at) std::memcpy(&out.emplace_back(), place(at), sizeof(T));
    head_.store(tail, std::memory_order_release);
  }
  /// Any thread.
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  std::byte* place(std::size_t at) { return bytes_.get() + (at & (capacity_ - 1)) * sizeof(T); }

  std::size_t capacity_;
  std::unique_ptr<std::byte[]> bytes_;
  std::atomic<std::uint64_t> dropped_{0};
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t head_seen_ = 0;  ///< the writer's last look at head_
};

/// The latest value from one writer to one reader: three places, of which each side owns one and the third is swapped.
/// A value that the reader did not fetch in time is overwritten.
template <class T>
class LatestSlot {
 public:
  /// Writer only.
  void publish(T value) {
    places_[writing_] = std::move(value);
    writing_ = shared_.exchange(writing_ | fresh, std::memory_order_acq_rel) & ~fresh;
    places_[writing_] = T{};
  }
  /// Reader only. The newest value that was not fetched before, or nothing.
  std::optional<T> fetch() {
    if ((shared_.load(std::memory_order_relaxed) & fresh) == 0) return std::nullopt;
    reading_ = shared_.exchange(reading_, std::memory_order_acq_rel) & ~fresh;
    return std::exchange(places_[reading_], T{});
  }

 private:
  static constexpr unsigned fresh = 4;
  std::array<T, 3> places_{};
  unsigned writing_ = 0;
  alignas(64) std::atomic<unsigned> shared_{1};
  alignas(64) unsigned reading_ = 2;
};

/// How a loop gets its views.
using ViewSlot = LatestSlot<std::shared_ptr<const View>>;

}  // namespace signalbox::routing
