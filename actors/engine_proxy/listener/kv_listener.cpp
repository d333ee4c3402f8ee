#include "actors/engine_proxy/listener/kv_listener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <zmq.hpp>

#include "messages/bus/sockets.hpp"

namespace signalbox::engine_proxy {
namespace {

constexpr int most_queued = 256;  // batches of one engine that ZeroMQ keeps for us
constexpr std::int64_t most_bytes =
    32 * 1024 * 1024;  // of a batch; a longer one ends the connection, and is a gap
constexpr Duration tell_every = 100ms;

std::optional<std::uint64_t> number_of(bus::FrameView part) {
  if (part.size() != 8) return std::nullopt;
  std::uint64_t out = 0;
  for (const std::uint8_t byte : part) out = out << 8 | byte;
  return out;
}

std::array<std::uint8_t, 8> big_endian(std::uint64_t number) {
  std::array<std::uint8_t, 8> out{};
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
  return out;
}

std::optional<KvCounts> counts_of(bus::FrameView part) {
  auto read = read_kv_batch(part);
  return read ? std::optional(*read) : std::nullopt;
}

/// One engine.
class Line {
 public:
  Line(zmq::context_t& context, KvSource source)
      : context_(context),
        source_(std::move(source)),
        follower_(!source_.replay.empty()),
        events_(context, zmq::socket_type::sub) {
    events_.set(zmq::sockopt::rcvhwm, most_queued);
    events_.set(zmq::sockopt::maxmsgsize, most_bytes);
    events_.set(zmq::sockopt::linger, 0);
    events_.set(zmq::sockopt::subscribe, "");
    watch_connections();
    bus::prepare_for(events_, source_.events);
    if (source_.events.find('*') != std::string::npos)
      events_.bind(source_.events);
    else
      events_.connect(source_.events);
  }

  zmq::socket_t& events() { return events_; }
  zmq::socket_t* replay() { return replay_.get(); }
  zmq::socket_t& connections() { return connections_; }

  /// Each is told as an event and an address; what they say beside that a connection stands is of no use here.
  void hear_connections() {
    bus::Parts parts;
    while (parts.receive(connections_)) follower_.connected();
  }

  void hear_events(Instant now) {
    bus::Parts parts;
    while (parts.receive(events_)) {
      const bus::Frames frames = parts.frames();
      if (frames.size() != 3) continue;
      if (const auto number = number_of(frames[1])) follower_.live(*number, counts_of(frames[2]), now);
    }
  }

  /// An empty delimiter; then a topic, from newer engines; then number and batch.
  void hear_replay(Instant now) {
    bus::Parts parts;
    while (replay_ && parts.receive(*replay_)) {
      const bus::Frames frames = parts.frames();
      if (frames.size() < 3 || frames.size() > 4 || !frames.front().empty()) continue;
      const auto number = number_of(frames[frames.size() - 2]);
      if (!number) continue;
      if (*number == UINT64_MAX) {
        follower_.replay_ended(now);
        return replay_.reset();
      }
      follower_.replayed(*number, counts_of(frames.back()), now);
    }
  }

  void go_on(Instant now) {
    follower_.on_wake(now);
    if (const auto from = follower_.take_question(now)) ask(*from);
    if (!follower_.settled() || follower_.state() == told_) return;
    if (follower_.state().clears == told_.clears && now < tell_next_) return;
    told_ = follower_.state();
    tell_next_ = now + tell_every;
    source_.tell(told_);
  }

  Instant next_wake() const {
    return follower_.settled() && !(follower_.state() == told_) ? std::min(tell_next_, follower_.next_wake())
                                                                : follower_.next_wake();
  }

 private:
  void watch_connections() {
    const std::string address = fmt::format("inproc://kv-connections-{}", static_cast<const void*>(this));
    if (zmq_socket_monitor(events_.handle(), address.c_str(), ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0)
      throw zmq::error_t();
    connections_.set(zmq::sockopt::linger, 0);
    connections_.connect(address);
  }

  /// Through a new socket each time: answers to an earlier question do not reach it.
  void ask(std::uint64_t from) {
    replay_ = std::make_unique<zmq::socket_t>(context_, zmq::socket_type::dealer);
    replay_->set(zmq::sockopt::rcvhwm,
                 static_cast<int>(KvFollower::most_waiting));  // it sends all it has at once
    replay_->set(zmq::sockopt::maxmsgsize, most_bytes);
    replay_->set(zmq::sockopt::linger, 0);
    bus::prepare_for(*replay_, source_.replay);
    replay_->connect(source_.replay);
    const auto number = big_endian(from);
    replay_->send(zmq::message_t(), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
    replay_->send(zmq::buffer(number), zmq::send_flags::dontwait);
  }

  zmq::context_t& context_;
  KvSource source_;
  KvFollower follower_;
  zmq::socket_t events_;
  zmq::socket_t connections_{context_, zmq::socket_type::pair};
  std::unique_ptr<zmq::socket_t> replay_;
  KvState told_;
  Instant tell_next_ = never_yet;
};

}  // namespace

class KvListener::Thread {
 public:
  explicit Thread(std::vector<KvSource> sources) : sources_(std::move(sources)) {}
  ~Thread() {
    stop_ = true;
    wakeup_.wake();
    if (thread_.joinable()) thread_.join();
  }

  Status start() {
    for (KvSource& source : sources_) {
      const std::string where = source.events;
      try {
        lines_.push_back(std::make_unique<Line>(context_, std::move(source)));
      } catch (const zmq::error_t& error) {
        return fail(ErrorKind::io, fmt::format("cannot hear KV events: {}", error.what()), where,
                    "check the engine's kv_events");
      }
    }
    thread_ = std::thread([this] { run(); });
    return {};
  }

 private:
  void run() {
    bus::settle_thread("kv-events");
    while (!stop_) {
      std::vector<zmq::pollitem_t> polled{{nullptr, wakeup_.fd(), ZMQ_POLLIN, 0}};
      for (auto& line : lines_) {
        polled.push_back({line->events().handle(), 0, ZMQ_POLLIN, 0});
        polled.push_back({line->connections().handle(), 0, ZMQ_POLLIN, 0});
        if (line->replay() != nullptr) polled.push_back({line->replay()->handle(), 0, ZMQ_POLLIN, 0});
      }
      zmq::poll(polled, wait());
      const Instant now = bus::clock_now();
      for (auto& line : lines_) {
        line->hear_connections();
        line->hear_events(now);
        line->hear_replay(now);
        try {
          line->go_on(now);
        } catch (const zmq::error_t&) {
          // An endpoint for replays that cannot be used: the follower gives up in time.
        }
      }
    }
  }

  std::chrono::milliseconds wait() const {
    Instant next = bus::clock_now() + 1s;
    for (const auto& line : lines_) next = std::min(next, line->next_wake());
    return std::clamp(std::chrono::ceil<std::chrono::milliseconds>(next - bus::clock_now()),
                      std::chrono::milliseconds(0), std::chrono::milliseconds(1000));
  }

  zmq::context_t context_{1};
  std::vector<KvSource> sources_;
  std::vector<std::unique_ptr<Line>> lines_;
  bus::Wakeup wakeup_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

KvListener::KvListener(std::vector<KvSource> sources)
    : thread_(std::make_unique<Thread>(std::move(sources))) {}
KvListener::~KvListener() = default;
Status KvListener::start() { return thread_->start(); }

}  // namespace signalbox::engine_proxy
