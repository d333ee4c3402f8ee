// What other threads hand to the bus thread.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <variant>

#include "messages/bus/sockets.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::bus {

/// A message with its body ready.
struct Publication {
  const schema::MessageInfo* info = nullptr;
  std::string topic;
  schema::Bytes body;
  Instant said;
  Duration said_wall{};
};
struct Subscription {
  std::string prefix;
  bool begins = true;
};
using Handed = std::variant<Publication, Subscription>;

/// Bounded and thread-safe; wakes the poll of the bus thread.
class Outbox {
 public:
  Outbox(std::size_t most_messages, std::size_t most_bytes)
      : most_messages_(most_messages), most_bytes_(most_bytes) {}

  /// False if it is full.
  bool push(Handed handed) {
    const std::size_t size = bytes_of(handed);
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= most_messages_ || bytes_ + size > most_bytes_) return false;
      items_.push_back(std::move(handed));
      bytes_ += size;
    }
    wakeup_.wake();
    return true;
  }
  std::deque<Handed> take_all() {
    wakeup_.clear();
    const std::lock_guard lock(mutex_);
    bytes_ = 0;
    return std::exchange(items_, {});
  }
  void wake() { wakeup_.wake(); }
  int fd() const { return wakeup_.fd(); }

 private:
  static std::size_t bytes_of(const Handed& handed) {
    const auto* publication = std::get_if<Publication>(&handed);
    return publication == nullptr ? 0 : publication->body.size();
  }

  std::size_t most_messages_;
  std::size_t most_bytes_;
  std::mutex mutex_;
  std::deque<Handed> items_;
  std::size_t bytes_ = 0;
  Wakeup wakeup_;
};

}  // namespace signalbox::bus
