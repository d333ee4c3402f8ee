// The latest value of each topic, as frames: a bounded cache without sockets or clocks.
#pragma once

#include <list>
#include <map>
#include <string>
#include <string_view>

#include "messages/bus/frames.hpp"

namespace signalbox::bus {

class LastValues {
 public:
  struct Value {
    std::string topic;
    const schema::MessageInfo* info = nullptr;
    ProcessName source;
    Incarnation incarnation;
    std::uint64_t sequence = 0;
    schema::Bytes envelope;
    schema::Bytes body;
    schema::Bytes proof;
    Instant arrived;  ///< moved back by the age in caches before this one

    Duration age(Instant now) const { return now - arrived; }
    bool expired(Instant now) const { return age(now) > info->keep; }
    std::size_t bytes() const { return topic.size() + envelope.size() + body.size() + proof.size(); }
  };

  LastValues(std::size_t most_bytes, std::size_t most_topics)
      : most_bytes_(most_bytes), most_topics_(most_topics) {}

  /// False if the message is no news for its topic: a repetition, or of a life that was superseded. Else it is
  /// kept if its kind is; where room is short the values that were not renewed for longest go.
  bool put(const Header& header, Frames frames, Instant now);

  /// The first value after topic `after` (empty: the first of all) under a topic prefix, or nullptr; those that
  /// have expired are let go.
  const Value* next(std::string_view prefix, std::string_view after, Instant now);

  std::size_t topics() const { return index_.size(); }
  std::size_t bytes() const { return bytes_; }
  std::uint64_t evicted() const { return evicted_; }

 private:
  using Order = std::list<Value>;  // oldest first
  void erase(Order::iterator value);

  std::size_t most_bytes_;
  std::size_t most_topics_;
  std::size_t bytes_ = 0;
  std::uint64_t evicted_ = 0;
  Order order_;
  std::map<std::string_view, Order::iterator, std::less<>> index_;  // keys lie in the values
};

}  // namespace signalbox::bus
