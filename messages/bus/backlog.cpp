#include "messages/bus/backlog.hpp"

namespace signalbox::bus {

namespace {
/// Read at once: many times of what is looked at in a turn, so that the reader overtakes whoever writes.
constexpr std::size_t most_at_once = 8192;
}  // namespace

std::uint64_t Backlog::fill(zmq::socket_t& socket) {
  std::uint64_t dropped = 0;
  Parts parts;
  for (std::size_t i = 0; i < most_at_once && parts.receive(socket); ++i) {
    bytes_ += parts.bytes();
    parts_.push_back(std::move(parts));
    for (; parts_.size() > most_messages_ || (bytes_ > most_bytes_ && parts_.size() > 1); ++dropped)
      drop_oldest();
  }
  return dropped;
}

bool Backlog::take(Parts& out) {
  if (parts_.empty()) return false;
  bytes_ -= parts_.front().bytes();
  out = std::move(parts_.front());
  parts_.pop_front();
  return true;
}

void Backlog::drop_oldest() {
  bytes_ -= parts_.front().bytes();
  parts_.pop_front();
}

}  // namespace signalbox::bus
