#include "messages/bus/last_values.hpp"

namespace signalbox::bus {

namespace {

bool is_news(const LastValues::Value& known, const schema::Envelope& envelope) {
  if (known.source != envelope.source) return true;
  if (known.incarnation == envelope.incarnation) return envelope.sequence > known.sequence;
  return !envelope.incarnation.older_than(known.incarnation);
}

schema::Bytes copy(FrameView frame) { return {frame.begin(), frame.end()}; }

}  // namespace

bool LastValues::put(const Header& header, Frames frames, Instant now) {
  const auto known = index_.find(header.topic);
  if (known != index_.end()) {
    if (!is_news(*known->second, header.envelope)) return false;
    erase(known->second);
  }
  const Instant arrived = now - header.hop.value_or(Duration::zero());
  if (header.info->keep <= now - arrived) return true;
  const schema::Envelope& envelope = header.envelope;
  order_.push_back({std::string(header.topic), header.info, envelope.source, envelope.incarnation,
                    envelope.sequence, copy(frames[1]), copy(frames[2]), copy(frames[3]), arrived});
  const auto added = std::prev(order_.end());
  index_.emplace(added->topic, added);
  bytes_ += added->bytes();
  while (bytes_ > most_bytes_ || index_.size() > most_topics_) erase(order_.begin()), ++evicted_;
  return true;
}

const LastValues::Value* LastValues::next(std::string_view prefix, std::string_view after, Instant now) {
  auto at = after.empty() ? index_.lower_bound(prefix) : index_.upper_bound(after);
  while (at != index_.end() && at->first.starts_with(prefix)) {
    const auto value = at->second;
    if (!value->expired(now)) return &*value;
    ++at;
    erase(value);
  }
  return nullptr;
}

void LastValues::erase(Order::iterator value) {
  bytes_ -= value->bytes();
  index_.erase(value->topic);
  order_.erase(value);
}

}  // namespace signalbox::bus
