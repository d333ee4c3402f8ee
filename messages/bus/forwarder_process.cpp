#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "messages/bus/forwarder.hpp"
#include "messages/bus/sockets.hpp"

namespace signalbox::bus {

namespace {

std::uint64_t resident_bytes() {
  unsigned long size = 0;
  unsigned long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

/// Its loop turns each second.
constexpr Duration late_from = 2s;

schema::Beat beat_of(const Identity& identity, const Forwarder& forwarder, const ForwarderStats& stats,
                     Duration uptime) {
  const SenderStats total = stats.total();
  schema::Beat out;
  out.role = identity.role, out.id = identity.id, out.cluster = identity.cluster;
  out.ready = true;
  out.state = fmt::format("{} topics cached", stats.cached_topics);
  out.uptime = uptime;
  const Duration still = clock_now() - stats.last_turn;
  if (stats.last_turn != Instant{} && still > late_from) out.loop_lag = still;
  out.resident_bytes = resident_bytes();
  out.messages_in = total.accepted;
  for (const std::uint64_t dropped : total.dropped) out.messages_refused += dropped;
  out.messages_refused += stats.keys_refused;
  out.messages_refused -= total.dropped_for(Drop::duplicate);
  out.endpoint = forwarder.endpoints().subscribe;
  return out;
}

/// An interest is kept for some seconds: it is said again before that, and at once when it changes.
constexpr Duration interest_every = 2s;

/// Sleeps until `stop` is requested or the time is over; false if it is requested.
bool wait_for(std::stop_token& stop, Duration duration) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

Status run_forwarder(ForwarderProcess process, std::stop_token stop) {
  auto forwarder = Forwarder::start(std::move(process.forwarder));
  if (!forwarder) return tl::unexpected(std::move(forwarder.error()));
  const Identity identity = process.node.identity;
  auto node = Node::start(std::move(process.node), {});
  if (!node) return tl::unexpected(std::move(node.error()));
  const Instant started = clock_now();
  schema::Interest interest;
  Instant told = never_yet;
  do {
    // A beat that finds the queue full is lost like any other: the next one says the same.
    const ForwarderStats stats = (*forwarder)->stats();
    schema::Beat beat = beat_of(identity, **forwarder, stats, clock_now() - started);
    beat.operator_endpoint = process.operator_endpoint;
    if (process.on_beat) process.on_beat(beat, stats);
    static_cast<void>((*node)->publish(beat));
    if (told != never_yet && stats.listened == interest.messages && clock_now() - told < interest_every)
      continue;
    interest.messages = stats.listened;
    told = clock_now();
    static_cast<void>((*node)->publish(interest));
  } while (wait_for(stop, process.beat));
  (*node)->stop();
  (*forwarder)->stop();
  return {};
}

}  // namespace signalbox::bus
