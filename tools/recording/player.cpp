#include "tools/recording/player.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "messages/bus/files.hpp"
#include "messages/bus/frames.hpp"
#include "messages/bus/sockets.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::recording {
namespace {

constexpr Duration full_queue_pause = 1ms, join_pause = 5ms;
constexpr std::size_t messages_per_step = 512;
/// A replay may be many times faster than life: no topic is held back.
constexpr std::size_t bulk_bytes_per_s = 1u << 30;

class PlayerImpl final : public Player {
 public:
  PlayerImpl(Reader reader, PlayerOptions options)
      : reader_(std::move(reader)), options_(std::move(options)) {}

  Status open() {
    if (const Status status = bus::make_private_folder(options_.folder); !status) return status;
    if (const Status status = bus::write_durably(header_file(options_.folder), to_text(reader_.header()));
        !status)
      return status;
    bus::ForwarderOptions forwarder;
    forwarder.endpoints = endpoints_in(options_.folder);
    forwarder.bulk_bytes_per_s = bulk_bytes_per_s;
    auto started = bus::Forwarder::start(std::move(forwarder));
    if (!started) return tl::unexpected(std::move(started.error()));
    forwarder_ = std::move(*started);
    socket_ = bus::open_socket(context_, zmq::socket_type::xpub, {300ms, 2s, 0ms});
    socket_.set(zmq::sockopt::xpub_nodrop, true);  // its one peer's full queue is told, not dropped into
    socket_.connect(forwarder_->endpoints().publish);
    next_ = reader_.next_recorded();
    start_at_ = std::max(options_.from, reader_.first());
    return {};
  }

  std::optional<Duration> step() override {
    if (!joined()) return join_pause;
    const Instant now = bus::clock_now();
    if (!began_) began_ = now;
    for (std::size_t i = 0; i < messages_per_step; ++i) {
      if (!next_) return std::nullopt;
      const Instant due = due_at(next_->arrived);
      if (due > now) return due - now;
      if (!say(*next_, now)) return full_queue_pause;
      next_ = reader_.next_recorded();
    }
    return Duration::zero();
  }

  std::uint64_t said() const override { return said_; }
  const Reader& reader() const override { return reader_; }

 private:
  Instant due_at(Instant recorded) const {
    if (options_.speed <= 0 || recorded <= start_at_) return *began_;
    return *began_ + from_seconds(to_seconds(recorded - start_at_) / options_.speed);
  }

  /// The forwarder subscribes to everything when it is there.
  bool joined() {
    zmq::message_t message;
    while (socket_.recv(message, zmq::recv_flags::dontwait)) joined_ = joined_ || message.size() == 1;
    return joined_;
  }

  /// False if the forwarder's queue is full. A message that cannot be read is left out.
  bool say(const RecordedMessage& message, Instant now) {
    auto envelope = codec::decode_envelope(message.envelope);
    if (!envelope) return true;
    // As if it had just been sent and had taken its recorded age to get here: any speed shows the same ages.
    envelope->sent = std::max(Duration::zero(), now.time_since_epoch() - message.age);
    const Bytes head = codec::encode(*envelope);
    const std::array<bus::FrameView, 4> frames{bus::as_frame(message.topic), head, message.body, {}};
    if (!bus::send_frames(socket_, frames)) return false;
    ++said_;
    return true;
  }

  Reader reader_;
  PlayerOptions options_;
  std::unique_ptr<bus::Forwarder> forwarder_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  bool joined_ = false;
  std::optional<Instant> began_;
  Instant start_at_{};
  std::optional<RecordedMessage> next_;
  std::uint64_t said_ = 0;
};

}  // namespace

bus::ForwarderEndpoints endpoints_in(const std::string& folder) {
  return {ProcessName(player_id), fmt::format("ipc://{}/publish", folder),
          fmt::format("ipc://{}/subscribe", folder)};
}

std::string header_file(const std::string& folder) { return folder + "/recording.txt"; }

Result<std::unique_ptr<Player>> Player::start(Reader reader, PlayerOptions options) {
  try {
    auto out = std::make_unique<PlayerImpl>(std::move(reader), std::move(options));
    if (auto status = out->open(); !status) return tl::unexpected(std::move(status.error()));
    return out;
  } catch (const zmq::error_t& error) {
    return fail(ErrorKind::io, fmt::format("the private bus cannot be opened: {}", error.what()));
  }
}

}  // namespace signalbox::recording
