// Sends traces to a collector by OTLP/HTTP, on a thread of its own: whatever the collector does, requests do not wait for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "actors/cluster_router/tracing/otlp.hpp"
#include "actors/cluster_router/tracing/outbox.hpp"
#include "messages/schema/health.hpp"

namespace signalbox::cluster_router {

struct TraceExporterOptions {
  std::string endpoint;    ///< URL
  std::string token_file;  ///< read for each request, so that a new one counts at once; empty: none
  tracing::Resource resource;
  tracing::OutboxOptions outbox;
  Duration request_timeout = 5s;
  Duration last_words = 1s;  ///< for what waits when the process stops
  std::function<void(schema::Severity, std::string_view event, const std::string& text)> log;
};

/// Thread-safe.
class TraceExporter {
 public:
  explicit TraceExporter(TraceExporterOptions options);
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  void take(tracing::EndedTrace trace);
  /// Sends what waits, within last_words, and ends the thread.
  void stop();
  tracing::OutboxCounters counters() const;

 private:
  struct Outcome;
  class Request;
  void run();
  void settle(const Outcome& outcome);

  const TraceExporterOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  tracing::Outbox
      outbox_;  ///< a batch that is with the collector is read without the mutex: nobody else touches it
  Instant give_up_at_ = end_of_time;  ///< set when the process stops
  bool stopping_ = false;
  bool troubled_ = false;  ///< the latest request was not taken
  std::thread thread_;
};

}  // namespace signalbox::cluster_router
