#include "tools/observe/tap.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>

#include "messages/bus/capture.hpp"
#include "messages/bus/receiver.hpp"
#include "messages/codec/codec.hpp"
#include "tools/cli/observer.hpp"

namespace signalbox::observe {
namespace {

volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) { interrupted = 1; }

/// What the bus thread hands over; bounded, so that a slow terminal costs messages and not memory.
class Inbox {
 public:
  void put(schema::DeliveryPtr delivery) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < most)
      waiting_.push_back(std::move(delivery));
    else
      ++dropped_;
    filled_.notify_one();
  }
  /// The next one, or nothing after a tenth of a second.
  schema::DeliveryPtr take() {
    std::unique_lock lock(mutex_);
    if (!filled_.wait_for(lock, 100ms, [this] { return !waiting_.empty(); })) return nullptr;
    schema::DeliveryPtr next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }
  std::uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  static constexpr std::size_t most = 100'000;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<schema::DeliveryPtr> waiting_;
  std::uint64_t dropped_ = 0;
};

/// False when nobody reads any more.
bool show(const TapOptions& options, const schema::Delivery& delivery) {
  const std::string line = options.json ? codec::to_json(delivery) : line_of(delivery);
  return std::fwrite(line.data(), 1, line.size(), stdout) == line.size() && std::fputc('\n', stdout) != EOF &&
         std::fflush(stdout) == 0;
}

Status replay(const TapOptions& options) {
  auto reader = bus::CaptureReader::open(options.replay);
  if (!reader) return tl::unexpected(reader.error());
  bus::Receiver receiver({});
  std::uint64_t shown = 0;
  while (interrupted == 0 && (options.most == 0 || shown < options.most)) {
    const auto message = reader->next();
    if (!message) return tl::unexpected(message.error());
    if (!*message) return {};
    const auto delivery = receiver.on_frames((*message)->views(), (*message)->arrived);
    if (!delivery) {
      if (options.drops && delivery.error().reason != bus::Drop::duplicate)
        fmt::print(stderr, "dropped {}: {}\n", name_of(delivery.error().reason), delivery.error().why.text());
    } else if (passes(options.filter, **delivery)) {
      if (!show(options, **delivery)) return {};
      ++shown;
    }
  }
  return {};
}

struct Recorder {
  std::optional<bus::CaptureWriter> writer;
  Status status;
};

bus::NodeHandlers handlers_for(const TapOptions& options, Inbox& inbox, Recorder& recorder) {
  bus::NodeHandlers handlers;
  handlers.on_delivery = [&](schema::DeliveryPtr delivery) {
    if (passes(options.filter, *delivery)) inbox.put(std::move(delivery));
  };
  if (options.drops)
    handlers.on_drop = [](bus::Drop reason, std::string_view sender, std::string_view topic,
                          const Error& why) {
      fmt::print(stderr, "dropped {} from {} on {}: {}\n", name_of(reason), sender, topic, why.text());
    };
  if (recorder.writer)
    handlers.on_frames = [&recorder](bus::Frames frames, Instant arrived) {
      if (recorder.status) recorder.status = recorder.writer->write(frames, arrived);
    };
  return handlers;
}

bool is_there(const bus::NodeStats& stats) {
  return stats.forwarders_joined > 0 || stats.received.total().accepted > 0;
}

Status listen(const TapOptions& options, const cli::Fleet& fleet, std::vector<std::string> topics) {
  Inbox inbox;
  Recorder recorder;
  if (!options.record.empty()) {
    auto writer = bus::CaptureWriter::create(options.record);
    if (!writer) return tl::unexpected(writer.error());
    recorder.writer = std::move(*writer);
  }
  auto node = cli::join_bus(fleet, cli::tool_id, std::move(topics), handlers_for(options, inbox, recorder));
  if (!node) return tl::unexpected(node.error());
  constexpr Duration patience = 3s;
  const Instant began = cli::monotonic_now();
  const Instant end = options.seconds > 0 ? began + from_seconds(options.seconds) : end_of_time;
  std::uint64_t shown = 0;
  bool told = false;
  while (interrupted == 0 && cli::monotonic_now() < end && (options.most == 0 || shown < options.most)) {
    if (const auto delivery = inbox.take()) {
      if (!show(options, *delivery)) break;
      ++shown;
    } else if (!told && cli::monotonic_now() - began > patience && !is_there((*node)->stats())) {
      fmt::print(stderr, "{}\n", cli::nobody_there(fleet).text());
      told = true;
    }
  }
  const bool bus_is_there = is_there((*node)->stats());
  (*node)->stop();
  if (inbox.dropped() > 0)
    fmt::print(stderr, "{} messages came faster than they could be shown\n", inbox.dropped());
  if (recorder.writer && recorder.status) recorder.status = recorder.writer->flush();
  if (!recorder.status) return recorder.status;
  if (!bus_is_there && interrupted == 0) return tl::unexpected(cli::nobody_there(fleet));
  return {};
}

}  // namespace

Status tap(const TapOptions& options) {
  auto topics = subscriptions(options.filter);
  if (!topics) return tl::unexpected(topics.error());
  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, interrupt);
  ::signal(SIGPIPE, SIG_IGN);
  if (!options.replay.empty()) return replay(options);
  const auto fleet = cli::open_fleet(options.fleet);
  if (!fleet) return tl::unexpected(fleet.error());
  return listen(options, *fleet, std::move(*topics));
}

}  // namespace signalbox::observe
