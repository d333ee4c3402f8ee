#include "actors/engine_proxy/fetcher.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace signalbox::engine_proxy {

namespace {

/// libcurl's process-wide state, set up once and never torn down.
void ready_curl() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
}

struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct Transfer {
  std::unique_ptr<CURL, EasyDeleter> handle;
  ScrapeResult result;
  Fetcher::Done done;
  std::shared_ptr<const net::TlsClient> trust;
  std::unique_ptr<curl_slist, EasyDeleter> connect_to, headers;
  std::size_t most_bytes = 0;
  char error[CURL_ERROR_SIZE] = "";
};

void add_header(Transfer& transfer, const std::string& line) {
  transfer.headers.reset(curl_slist_append(transfer.headers.release(), line.c_str()));
}

std::size_t take_bytes(char* bytes, std::size_t one, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.result.body.size() + one * count > transfer.most_bytes) return 0;
  transfer.result.body.append(bytes, one * count);
  return one * count;
}

CURLcode recognise(CURL*, void* context, void* trust) {
  static_cast<const net::TlsClient*>(trust)->apply(static_cast<ssl_ctx_st*>(context));
  return CURLE_OK;
}

/// Asks the server by the name that its certificate is for, wherever it stands.
std::string ask_by_name(Transfer& transfer, const std::string& url) {
  constexpr std::string_view scheme = "https://";
  const std::string& name = transfer.trust->server_name();
  const std::string authority = url.substr(scheme.size(), url.find('/', scheme.size()) - scheme.size());
  const std::string host = authority.substr(0, authority.rfind(':'));
  if (name.empty() || name == host) return url;
  transfer.connect_to.reset(curl_slist_append(nullptr, fmt::format("::{}", authority).c_str()));
  add_header(transfer, fmt::format("Host: {}", authority));
  curl_easy_setopt(transfer.handle.get(), CURLOPT_CONNECT_TO, transfer.connect_to.get());
  return fmt::format("{}{}{}", scheme, name, url.substr(scheme.size() + host.size()));
}

/// False: this libcurl cannot be told whom to trust.
bool set_trust(Transfer& transfer) {
  CURL* handle = transfer.handle.get();
  // The name is judged with the certificate, in the same place as for requests.
  return curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 0L) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, recognise) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_SSL_CTX_DATA, transfer.trust.get()) == CURLE_OK;
}

FetchFault fault_of(CURLcode code) {
  switch (code) {
    case CURLE_OK: return FetchFault::none;
    case CURLE_PEER_FAILED_VERIFICATION: return FetchFault::untrusted;
    case CURLE_OPERATION_TIMEDOUT: return FetchFault::timed_out;
    case CURLE_WRITE_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_UNSUPPORTED_PROTOCOL: return FetchFault::malformed;
    default: return FetchFault::unreachable;
  }
}

}  // namespace

class Fetcher::Thread {
 public:
  explicit Thread(Limits limits) : limits_(limits) {
    ready_curl();
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(limits.connections));
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(limits.connections));
    thread_ = std::thread([this] { run(); });
  }
  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    for (auto& [handle, transfer] : running_) curl_multi_remove_handle(multi_, handle);
    running_.clear();
    curl_multi_cleanup(multi_);
  }

  void start(const StartScrape& what, Access access, Done done) {
    auto transfer = std::make_unique<Transfer>();
    transfer->result.number = what.number;
    transfer->result.page = what.page;
    transfer->done = std::move(done);
    transfer->trust = std::move(access.trust);
    transfer->most_bytes = limits_.body_bytes;
    transfer->handle.reset(curl_easy_init());
    CURL* handle = transfer->handle.get();
    const long timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(what.timeout).count();
    const std::string url = transfer->trust ? ask_by_name(*transfer, what.url) : what.url;
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    if (!access.api_key.empty()) add_header(*transfer, "Authorization: Bearer " + access.api_key);
    const bool trusts = transfer->trust && set_trust(*transfer);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, trusts ? "https" : "http");
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "signalbox");
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer.get());
    if (!what.post.empty()) {
      add_header(*transfer, "content-type: application/json");
      curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, what.post.c_str());
    }
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, transfer->headers.get());
    {
      const std::lock_guard lock(mutex_);
      arriving_.push_back(std::move(transfer));
    }
    curl_multi_wakeup(multi_);
  }

 private:
  void run() {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (stop_) return;
        for (auto& transfer : arriving_) {
          CURL* handle = transfer->handle.get();
          curl_multi_add_handle(multi_, handle);
          running_.emplace(handle, std::move(transfer));
        }
        arriving_.clear();
      }
      int still_running = 0;
      curl_multi_perform(multi_, &still_running);
      int waiting = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &waiting))
        if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result);
      curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
  }

  void finish(CURL* handle, CURLcode code) {
    curl_multi_remove_handle(multi_, handle);
    auto found = running_.extract(handle);
    Transfer& transfer = *found.mapped();
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    transfer.result.fault = fault_of(code);
    transfer.result.status = static_cast<int>(status);
    if (code != CURLE_OK)
      transfer.result.detail = *transfer.error ? transfer.error : curl_easy_strerror(code);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
      transfer.result.detail +=
          fmt::format("; the fleet table names {}", transfer.trust ? transfer.trust->identity() : "nobody");
    transfer.done(std::move(transfer.result));
  }

  Limits limits_;
  CURLM* multi_ = nullptr;
  std::mutex mutex_;
  bool stop_ = false;
  std::vector<std::unique_ptr<Transfer>> arriving_;
  std::map<CURL*, std::unique_ptr<Transfer>> running_;
  std::thread thread_;
};

Fetcher::Fetcher(Limits limits) : thread_(std::make_unique<Thread>(limits)) {}
Fetcher::~Fetcher() = default;
void Fetcher::start(const StartScrape& what, Access access, Done done) {
  thread_->start(what, std::move(access), std::move(done));
}

}  // namespace signalbox::engine_proxy
