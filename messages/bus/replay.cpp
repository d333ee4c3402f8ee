#include "messages/bus/replay.hpp"

#include "messages/bus/sockets.hpp"

namespace signalbox::bus {

Replay::State Replay::step(LastValues& values, zmq::socket_t& xpub, Instant now, std::size_t most,
                           std::uint64_t& sent) {
  // Under NODROP a full queue of the one peer that has subscribed to this nonce says so instead of dropping.
  xpub.set(zmq::sockopt::xpub_nodrop, true);
  State state = State::waiting;
  for (std::size_t i = 0; i < most; ++i) {
    const LastValues::Value* value = values.next(prefix_, after_, now);
    if (value == nullptr) {
      state = State::done;
      break;
    }
    const std::string topic = fmt::format("@{}/{}", nonce_, value->topic);
    if (!send_frames(xpub, ValueFrames(*value, now, topic).frames())) break;
    after_ = value->topic;
    ++sent;
  }
  xpub.set(zmq::sockopt::xpub_nodrop, false);
  return state;
}

}  // namespace signalbox::bus
