#include "actors/cluster_router/trace_exporter.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "actors/kit/process.hpp"
#include "cluster-config/load/load.hpp"

namespace signalbox::cluster_router {
namespace {

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::size_t ignore_bytes(char*, std::size_t one, std::size_t count, void*) { return one * count; }

}  // namespace

struct TraceExporter::Outcome {
  enum class Kind { sent, refused, failed } kind = Kind::failed;
  Duration retry_after{};
  std::string text;  ///< what went wrong
};

/// The connection to the collector, kept from one request to the next.
class TraceExporter::Request {
 public:
  explicit Request(TraceExporter& exporter) : exporter_(exporter) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    static_cast<void>(ready);
    handle_.reset(curl_easy_init());
    set(CURLOPT_URL, exporter.options_.endpoint.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_USERAGENT, "signalbox");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(exporter.options_.request_timeout / 1ms));
    set(CURLOPT_POST, 1L);
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_WRITEFUNCTION, ignore_bytes);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Request::go_on);
    set(CURLOPT_XFERINFODATA, this);
  }

  Outcome send(const std::string& body) {
    std::unique_ptr<curl_slist, CurlDeleter> lines;
    const auto add = [&](const std::string& line) {
      lines.reset(curl_slist_append(lines.release(), line.c_str()));
    };
    add("Content-Type: application/json");
    add("Expect:");
    if (const std::string& file = exporter_.options_.token_file; !file.empty()) {
      const auto line = config::read_secret_line(file);
      if (!line) return {Outcome::Kind::failed, {}, line.error().text()};
      add("Authorization: Bearer " + *line);
    }
    set(CURLOPT_HTTPHEADER, lines.get());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_POSTFIELDS, body.c_str());
    error_[0] = 0;
    const CURLcode code = curl_easy_perform(handle_.get());
    if (code != CURLE_OK)
      return {Outcome::Kind::failed, {}, error_[0] != 0 ? error_ : curl_easy_strerror(code)};
    return judge();
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(handle_.get(), option, value);
  }

  /// As the protocol says which answers may be tried again.
  Outcome judge() const {
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(handle_.get(), CURLINFO_RETRY_AFTER, &retry_after_s);
    if (status >= 200 && status < 300) return {Outcome::Kind::sent, {}, {}};
    const bool later = status == 429 || status == 502 || status == 503 || status == 504;
    return {later ? Outcome::Kind::failed : Outcome::Kind::refused, std::chrono::seconds(retry_after_s),
            fmt::format("it answered with status {}", status)};
  }

  /// Not 0: the transfer ends.
  static int go_on(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    TraceExporter& exporter = static_cast<Request*>(self)->exporter_;
    const std::lock_guard lock(exporter.mutex_);
    return kit::monotonic_now() >= exporter.give_up_at_ ? 1 : 0;
  }

  TraceExporter& exporter_;
  std::unique_ptr<CURL, CurlDeleter> handle_;
  char error_[CURL_ERROR_SIZE] = "";
};

TraceExporter::TraceExporter(TraceExporterOptions options)
    : options_(std::move(options)), outbox_(options_.outbox), thread_([this] { run(); }) {}

TraceExporter::~TraceExporter() { stop(); }

void TraceExporter::take(tracing::EndedTrace trace) {
  const std::lock_guard lock(mutex_);
  outbox_.add(std::move(trace), kit::monotonic_now());
  wake_.notify_one();
}

void TraceExporter::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) give_up_at_ = kit::monotonic_now() + options_.last_words;
    stopping_ = true;
    outbox_.hurry();
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

tracing::OutboxCounters TraceExporter::counters() const {
  const std::lock_guard lock(mutex_);
  return outbox_.counters();
}

void TraceExporter::run() {
  Request request(*this);
  std::unique_lock lock(mutex_);
  while (true) {
    const Instant now = kit::monotonic_now();
    const std::vector<tracing::EndedTrace>& batch = outbox_.next(now);
    if (batch.empty()) {
      if (stopping_) return;
      // A wake-up too many does no harm, and due() may be as far away as a clock can count.
      wake_.wait_for(lock,
                     std::clamp<Duration>(outbox_.due() == end_of_time ? 1s : outbox_.due() - now, 1ms, 1s));
      continue;
    }
    lock.unlock();
    const Outcome outcome = request.send(tracing::otlp_json(batch, options_.resource, kit::unix_offset()));
    lock.lock();
    settle(outcome);
    // The last words are said once.
    if (stopping_ && (outcome.kind != Outcome::Kind::sent || kit::monotonic_now() >= give_up_at_)) return;
  }
}

/// Says when it begins to go wrong and when it goes again, not how often it is tried meanwhile.
void TraceExporter::settle(const Outcome& outcome) {
  const bool was_troubled = std::exchange(troubled_, outcome.kind != Outcome::Kind::sent);
  const bool refused = outcome.kind == Outcome::Kind::refused;
  if (!troubled_) {
    outbox_.sent();
    if (was_troubled) options_.log(schema::Severity::info, "traces_exported_again", options_.endpoint);
    return;
  }
  refused ? outbox_.refused() : outbox_.failed(kit::monotonic_now(), outcome.retry_after);
  if (!was_troubled)
    options_.log(schema::Severity::warning, refused ? "traces_refused" : "traces_not_exported",
                 fmt::format("{}: {}; requests are served as before", options_.endpoint, outcome.text));
}

}  // namespace signalbox::cluster_router
