// Traces between the request's end and the collector: a bounded queue that is sent in batches, holds on to a batch while the
// collector is away, and drops what comes when it is full.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "actors/cluster_router/tracing/trace.hpp"
#include "messages/base/time.hpp"

namespace signalbox::tracing {

struct OutboxOptions {
  std::size_t most = 2048;       ///< traces that wait
  std::size_t batch = 256;       ///< traces in a request
  Duration linger = 1s;          ///< that a trace waits for others
  Duration first_pause = 1s;     ///< after a request that failed; doubled with each that fails after it
  Duration longest_pause = 60s;  ///< also when the collector asks for more
};

/// In traces, since the start.
struct OutboxCounters {
  std::uint64_t exported = 0;
  std::uint64_t dropped = 0;   ///< found the queue full
  std::uint64_t refused = 0;   ///< by the collector, for good
  std::uint64_t failures = 0;  ///< requests to the collector that failed
};

/// Pure: the times are told to it.
class Outbox {
 public:
  explicit Outbox(const OutboxOptions& options) : options_(options) {}

  void add(EndedTrace trace, Instant now);
  /// When next() has something to send; end_of_time while nothing waits.
  Instant due() const;
  /// What to send now, in order; empty if nothing is due. It stays until one of the following is called.
  const std::vector<EndedTrace>& next(Instant now);
  /// The process ends: a whole batch and a pause are not waited for any more.
  void hurry() { hurried_ = true; }

  void sent();
  /// The collector does not want this batch, now or later.
  void refused();
  /// The collector did not take it now. `retry_after`: as it asks; zero: it does not say.
  void failed(Instant now, Duration retry_after);

  const OutboxCounters& counters() const { return counters_; }
  std::size_t waiting() const { return waiting_.size() + batch_.size(); }

 private:
  void settle();

  OutboxOptions options_;
  OutboxCounters counters_;
  std::deque<EndedTrace> waiting_;
  std::vector<EndedTrace> batch_;  ///< with the collector, or to be sent again
  Instant oldest_ = end_of_time;   ///< when the first of waiting_ came
  Instant paused_until_ = never_yet;
  Duration pause_{};
  bool hurried_ = false;
};

}  // namespace signalbox::tracing
