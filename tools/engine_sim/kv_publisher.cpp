#include "tools/engine_sim/kv_publisher.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <deque>
#include <msgpack.hpp>
#include <mutex>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "messages/bus/sockets.hpp"

namespace signalbox::engine_sim {
namespace {

using Packer = msgpack::packer<msgpack::sbuffer>;

std::array<std::uint8_t, 8> big_endian(std::uint64_t number) {
  std::array<std::uint8_t, 8> out{};
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
  return out;
}

}  // namespace

class KvPublisher::Thread {
 public:
  Status start(const KvOptions& options) {
    options_ = options;
    try {
      events_.set(zmq::sockopt::linger, 0);
      events_.bind(options.events);
      if (!options.replay.empty()) {
        replay_.set(zmq::sockopt::linger, 0);
        replay_.set(zmq::sockopt::sndhwm, 0);  // a replay is sent as a whole; it is bounded by the buffer
        replay_.bind(options.replay);
      }
    } catch (const zmq::error_t& error) {
      return fail(ErrorKind::io, fmt::format("cannot publish KV events: {}", error.what()),
                  options.events + " " + options.replay);
    }
    thread_ = std::thread([this] { run(); });
    return {};
  }
  ~Thread() {
    stop_ = true;
    wakeup_.wake();
    if (thread_.joinable()) thread_.join();
  }

  const KvOptions& options() const { return options_; }

  void take(std::string batch, bool lost) {
    {
      const std::lock_guard lock(mutex_);
      fresh_.push_back({std::move(batch), lost});
    }
    wakeup_.wake();
  }

 private:
  struct Batch {
    std::string bytes;
    bool lost = false;
  };

  void run() {
    bus::settle_thread("kv-publisher");
    while (!stop_) {
      std::vector<zmq::pollitem_t> polled{{nullptr, wakeup_.fd(), ZMQ_POLLIN, 0},
                                          {events_.handle(), 0, 0, 0}};
      if (!options_.replay.empty()) polled.push_back({replay_.handle(), 0, ZMQ_POLLIN, 0});
      zmq::poll(polled, std::chrono::milliseconds(1000));
      if ((polled[0].revents & ZMQ_POLLIN) != 0) wakeup_.clear();
      publish_fresh();
      if (!options_.replay.empty()) answer_replays();
    }
  }

  void publish_fresh() {
    std::deque<Batch> batches;
    {
      const std::lock_guard lock(mutex_);
      batches.swap(fresh_);
    }
    for (Batch& batch : batches) {
      if (!batch.lost) {
        const auto number = big_endian(first_ + kept_.size());
        events_.send(zmq::message_t(), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
        events_.send(zmq::buffer(number), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
        events_.send(zmq::buffer(batch.bytes), zmq::send_flags::dontwait);
      }
      kept_.push_back(std::move(batch.bytes));
      if (kept_.size() > options_.buffer) kept_.pop_front(), ++first_;
    }
  }

  void answer_replays() {
    for (;;) {
      std::vector<zmq::message_t> parts;
      for (bool more = true; more;) {
        zmq::message_t part;
        if (!replay_.recv(part, zmq::recv_flags::dontwait)) return;
        more = part.more();
        parts.push_back(std::move(part));
      }
      if (parts.size() != 3 || parts[2].size() != 8) continue;
      std::uint64_t from = 0;
      for (std::size_t i = 0; i < 8; ++i) from = from << 8 | parts[2].data<std::uint8_t>()[i];
      for (std::uint64_t n = std::max(from, first_); n < first_ + kept_.size(); ++n)
        answer(parts[0], n, kept_[n - first_]);
      answer(parts[0], UINT64_MAX, {});
    }
  }

  void answer(const zmq::message_t& to, std::uint64_t number, const std::string& bytes) {
    const auto more = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
    const auto head = big_endian(number);
    replay_.send(zmq::buffer(to.data(), to.size()), more);
    replay_.send(zmq::message_t(), more);
    if (options_.format == KvFormat::maps) replay_.send(zmq::message_t(), more);
    replay_.send(zmq::buffer(head), more);
    replay_.send(zmq::buffer(bytes), zmq::send_flags::dontwait);
  }

  KvOptions options_;
  zmq::context_t context_{1};
  zmq::socket_t events_{context_, zmq::socket_type::pub};
  zmq::socket_t replay_{context_, zmq::socket_type::router};
  std::deque<std::string> kept_;
  std::uint64_t first_ = 0;  ///< number of the first one kept
  std::mutex mutex_;
  std::deque<Batch> fresh_;
  bus::Wakeup wakeup_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

KvPublisher::KvPublisher() = default;
KvPublisher::~KvPublisher() = default;

Status KvPublisher::start(const KvOptions& options) {
  thread_ = std::make_unique<Thread>();
  return thread_->start(options);
}

void KvPublisher::stored(BlockHash block, BlockHash parent, std::uint32_t block_tokens) {
  if (thread_) changes_.push_back({'s', block, parent, block_tokens});
}
void KvPublisher::removed(BlockHash block) {
  if (thread_) changes_.push_back({'r', block, 0, 0});
}
void KvPublisher::cleared() {
  if (thread_) changes_.push_back({'c', 0, 0, 0});
}

void KvPublisher::publish(double wall_s, bool strange, bool lost) {
  if (!thread_ || changes_.empty()) return;
  const bool maps = thread_->options().format == KvFormat::maps;
  msgpack::sbuffer buffer;
  Packer p(buffer);
  const auto key = [&](std::string_view name) {
    if (maps) p.pack(name);
  };
  const auto begin = [&](std::string_view type, std::uint32_t fields) {
    maps ? p.pack_map(fields + 1) : p.pack_array(fields + 1);
    key("type");
    p.pack(type);
  };
  p.pack_array(3).pack_double(wall_s);
  p.pack_array(static_cast<std::uint32_t>(changes_.size() + (strange ? 1 : 0)));
  if (strange) begin("BlockPondered", 1), key("why"), p.pack_nil();
  for (const Change& change : changes_) {
    if (change.kind == 'c') {
      begin("AllBlocksCleared", 0);
      continue;
    }
    const bool stored = change.kind == 's';
    begin(stored ? "BlockStored" : "BlockRemoved", stored ? 6 : 2);
    key("block_hashes"), p.pack_array(1).pack_uint64(change.block);
    if (stored) {
      key("parent_block_hash"), change.parent == 0 ? p.pack_nil() : p.pack_uint64(change.parent);
      key("token_ids"), p.pack_array(change.block_tokens);
      // There are no tokens here, only text; the numbers are as many and as large as those of a real vocabulary.
      for (std::uint32_t t = 0; t < change.block_tokens; ++t)
        p.pack_uint32(static_cast<std::uint32_t>(change.block >> (t % 32)) % 128'000);
      key("block_size"), p.pack_uint32(change.block_tokens);
      key("lora_id"), p.pack_nil();
    }
    key("medium"), p.pack(std::string_view("GPU"));
  }
  p.pack_nil();
  changes_.clear();
  thread_->take(std::string(buffer.data(), buffer.size()), lost);
}

}  // namespace signalbox::engine_sim
