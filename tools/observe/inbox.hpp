// What a bus thread hands to the thread that shows it. Bounded in messages and bytes, so that a slow terminal or a
// paused pipe costs messages, which are counted, and not memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

#include "messages/schema/catalog.hpp"

namespace signalbox::observe {

class Inbox {
 public:
  void put(schema::DeliveryPtr delivery, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < most_messages && bytes_ + bytes <= most_bytes) {
      waiting_.push_back({std::move(delivery), bytes});
      bytes_ += bytes;
    } else {
      ++dropped_;
    }
    filled_.notify_one();
  }

  /// The next one, or nothing after a tenth of a second.
  schema::DeliveryPtr take() {
    std::unique_lock lock(mutex_);
    if (!filled_.wait_for(lock, 100ms, [this] { return !waiting_.empty(); })) return nullptr;
    schema::DeliveryPtr next = std::move(waiting_.front().delivery);
    bytes_ -= waiting_.front().bytes;
    waiting_.pop_front();
    return next;
  }

  std::uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  struct Item {
    schema::DeliveryPtr delivery;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t most_messages = 100'000;
  static constexpr std::size_t most_bytes = 64u << 20;

  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Item> waiting_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace signalbox::observe
