#include "actors/global_optimizer/etcd/client.hpp"

#include <curl/curl.h>

#include <chrono>
#include <memory>

namespace signalbox::global_optimizer {

namespace {

constexpr std::size_t most_bytes = 1 << 20;

struct Deleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::size_t take_bytes(char* bytes, std::size_t one, std::size_t count, void* user) {
  auto& body = *static_cast<std::string*>(user);
  if (body.size() + one * count > most_bytes) return 0;
  body.append(bytes, one * count);
  return one * count;
}

int is_stopped(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::stop_token*>(user)->stop_requested() ? 1 : 0;
}

void set_file(CURL* handle, CURLoption option, const std::string& path) {
  if (!path.empty()) curl_easy_setopt(handle, option, path.c_str());
}

/// One POST of a JSON text. A connection of its own each time: one that etcd or the network has forgotten would hold up a
/// renewal.
Result<std::string> post(const EtcdOptions& options, const std::string& url, const std::string& text,
                         Duration patience, const std::stop_token& stop) {
  const std::unique_ptr<CURL, Deleter> owned(curl_easy_init());
  CURL* handle = owned.get();
  const std::unique_ptr<curl_slist, Deleter> headers(
      curl_slist_append(nullptr, "content-type: application/json"));
  std::string body;
  char error[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "signalbox");
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(patience).count()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(text.size()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, text.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, is_stopped);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &stop);
  set_file(handle, CURLOPT_CAINFO, options.authorities);
  set_file(handle, CURLOPT_SSLCERT, options.certificate);
  set_file(handle, CURLOPT_SSLKEY, options.key);
  const CURLcode code = curl_easy_perform(handle);
  if (code != CURLE_OK) return fail(ErrorKind::unavailable, *error ? error : curl_easy_strerror(code), url);
  return body;
}

}  // namespace

EtcdClient::EtcdClient(EtcdOptions options) : options_(std::move(options)) {
  // libcurl's process-wide state, set up once and never torn down.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)ready;
  thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
}

EtcdClient::~EtcdClient() = default;

void EtcdClient::ask(const AskEtcd& question, Done done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({question, std::move(done)});
  }
  arrived_.notify_one();
}

void EtcdClient::run(std::stop_token stop) {
  for (;;) {
    std::vector<Job> jobs;
    {
      std::unique_lock lock(mutex_);
      if (!arrived_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
      jobs.swap(waiting_);
    }
    for (const Job& job : jobs) {
      EtcdAnswer answered = answer(job.question, stop);
      if (stop.stop_requested()) return;
      job.done(std::move(answered));
    }
  }
}

EtcdAnswer EtcdClient::answer(const AskEtcd& question, std::stop_token stop) {
  const EtcdCall call = call_for(question, options_.keys, options_.self);
  const std::string url = options_.endpoints[endpoint_] + call.path;
  EtcdAnswer out;
  const auto answered =
      post(options_, url, call.body, question.patience, stop).and_then([&](const std::string& body) {
        return read_answer(question, body);
      });
  if (answered) {
    out = *answered;
  } else {
    endpoint_ = (endpoint_ + 1) % options_.endpoints.size();
    out.fault = answered.error().text();
  }
  out.number = question.number;
  return out;
}

}  // namespace signalbox::global_optimizer
