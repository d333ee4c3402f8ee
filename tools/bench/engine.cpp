#include "tools/bench/engine.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/cluster_router/http/chunked.hpp"
#include "tools/bench/descriptors.hpp"

namespace signalbox::bench {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;
constexpr int events_in_a_row = 64;  // of an unpaced stream, then another has its turn

constexpr std::string_view event_before =
    "data: "
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{"
    "\"index\":0,\"delta\":{\"content\":\"t=";
constexpr std::string_view event_after = "\"},\"finish_reason\":null}]}\n\n";
constexpr std::string_view last_event = "data: [DONE]\n\n";
constexpr std::size_t stamp_digits = 16;

volatile std::sig_atomic_t stopped = 0;

std::string json_answer() {
  const std::string body =
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":")" +
      std::string(780, 'x') +
      R"("},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":160,"total_tokens":360}})";
  return fmt::format("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
                     body.size(), body);
}

std::string probe_answer() {
  const std::string body =
      R"({"status":"ok","object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"bench","max_model_len":32768}],"model_path":"m","served_model_name":"m","tokenizer_path":"","is_generation":true,"max_total_num_tokens":1000000,"disaggregation_mode":"null","dp_size":1})";
  return fmt::format("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
                     body.size(), body);
}

std::string chunk(std::string_view data) { return fmt::format("{:x}\r\n{}\r\n", data.size(), data); }

std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const std::size_t from = text.find_first_of("0123456789", at + key.size());
  std::uint64_t out = 0;
  if (from <= at + key.size() + 2) std::from_chars(text.data() + from, text.data() + text.size(), out);
  return out;
}

struct Connection {
  net::Fd fd;
  std::string in;
  std::string unsent;
  std::uint64_t events_left = 0;
  std::uint64_t every_ns = 0, due_ns = 0;
  bool streaming = false, waits_for_room = false;
};

/// How long the request at the start of `bytes` is, or 0 while it is not whole; `body` is then its body (unchunked).
std::size_t whole_request(const std::string& bytes, std::string& body) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return 0;
  std::string head = bytes.substr(0, end);
  std::transform(head.begin(), head.end(), head.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::size_t start = end + 4;
  if (head.find("transfer-encoding: chunked") == std::string::npos) {
    const std::size_t length = number_after(head, "content-length:");
    if (bytes.size() < start + length) return 0;
    body.assign(bytes, start, length);
    return start + length;
  }
  http::ChunkedDecoder decoder;
  body.clear();
  for (std::size_t at = start;;) {
    const auto step = decoder.next(std::string_view(bytes).substr(at));
    at += step.consumed;
    body += step.data;
    if (step.state == http::ChunkedDecoder::State::ended) return at;
    if (step.consumed == 0 || step.state == http::ChunkedDecoder::State::failed) return 0;
  }
}

class Engines {
 public:
  Status listen(std::uint16_t port) {
    const auto address = net::resolve("127.0.0.1", port);
    if (!address) return tl::unexpected(address.error());
    auto listener = net::listen_on(*address, false);
    if (!listener) return tl::unexpected(listener.error());
    const auto bound = net::local_address(*listener);
    if (!bound) return tl::unexpected(bound.error());
    ports.push_back(bound->port());
    poller_.add(*listener, EPOLLIN, listeners_.size());
    listeners_.push_back(std::move(*listener));
    return {};
  }

  void run() {
    std::array<epoll_event, 512> events;
    while (stopped == 0) {
      const std::size_t count = poller_.wait(events.data(), events.size(), longest_wait());
      for (std::size_t i = 0; i < count; ++i) on_event(events[i]);
      send_due();
    }
  }

  std::vector<std::uint16_t> ports;

 private:
  using Due = std::pair<std::uint64_t, std::uint64_t>;  // when, which connection

  std::int64_t longest_wait() const {
    if (due_.empty()) return 1'000'000'000;
    const std::uint64_t now = now_ns();
    return due_.top().first <= now ? 0 : static_cast<std::int64_t>(due_.top().first - now);
  }

  void on_event(const epoll_event& event) {
    if (event.data.u64 < listeners_.size()) return accept(listeners_[event.data.u64]);
    const auto found = connections_.find(event.data.u64);
    if (found == connections_.end()) return;
    const bool lives = (event.events & EPOLLIN ? read(found->first, found->second) : true) &&
                       (event.events & EPOLLOUT ? go_on(found->first, found->second) : true) &&
                       (event.events & (EPOLLHUP | EPOLLERR)) == 0;
    if (!lives) connections_.erase(found);
  }

  void accept(const net::Fd& listener) {
    for (int i = 0; i < 64; ++i) {
      net::Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) return;
      set_no_delay(fd);
      const std::uint64_t number = next_++;
      poller_.add(fd, EPOLLIN, number);
      connections_[number].fd = std::move(fd);
    }
  }

  bool read(std::uint64_t number, Connection& on) {
    const ssize_t got = ::recv(on.fd.get(), scratch_.data(), scratch_.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
    if (got > 0) on.in.append(scratch_.data(), static_cast<std::size_t>(got));
    return answer_all(number, on);
  }

  bool answer_all(std::uint64_t number, Connection& on) {
    while (!on.streaming && !on.in.empty()) {
      const std::size_t size = whole_request(on.in, body_);
      if (size == 0) return true;
      const bool probe = !on.in.starts_with("POST");
      on.in.erase(0, size);
      if (on.in.empty()) on.in.shrink_to_fit();
      if (!(probe ? send(number, on, probe_) : answer(number, on))) return false;
    }
    return true;
  }

  bool answer(std::uint64_t number, Connection& on) {
    const bool stream = body_.find("\"stream\":true") != std::string::npos ||
                        body_.find("\"stream\": true") != std::string::npos;
    if (!stream) return send(number, on, json_);
    on.streaming = true;
    on.events_left = std::max<std::uint64_t>(number_after(body_, "events="), 1);
    on.every_ns = 1'000 * number_after(body_, "every_us=");
    on.due_ns = now_ns();
    if (!send(number, on,
              "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"))
      return false;
    return tick(number, on);
  }

  bool tick(std::uint64_t number, Connection& on) {
    for (int i = 0; on.events_left > 0 && on.unsent.empty(); ++i) {
      if (on.every_ns == 0 && i == events_in_a_row) {
        due_.emplace(now_ns(), number);
        return true;
      }
      if (on.every_ns > 0 && on.due_ns > now_ns()) {
        due_.emplace(on.due_ns, number);
        return true;
      }
      char stamp[stamp_digits + 1];
      fmt::format_to_n(stamp, stamp_digits, "{:016}", now_ns());
      event_.replace(stamp_at_, stamp_digits, stamp, stamp_digits);
      --on.events_left;
      on.due_ns += on.every_ns;
      if (!send(number, on, event_)) return false;
    }
    if (!on.unsent.empty()) return true;
    on.streaming = false;
    return send(number, on, end_) && answer_all(number, on);
  }

  bool send(std::uint64_t number, Connection& on, std::string_view bytes) {
    if (on.unsent.empty()) {
      const ssize_t put = ::send(on.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN) return false;
      if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    on.unsent += bytes;
    return watch(number, on);
  }

  bool watch(std::uint64_t number, Connection& on) {
    if (on.waits_for_room == !on.unsent.empty()) return true;
    on.waits_for_room = !on.waits_for_room;
    poller_.change(on.fd, on.waits_for_room ? EPOLLIN | EPOLLOUT : EPOLLIN, number);
    return true;
  }

  bool go_on(std::uint64_t number, Connection& on) {
    const std::string waiting = std::exchange(on.unsent, {});
    if (!send(number, on, waiting)) return false;
    return !on.unsent.empty() || !on.streaming || tick(number, on);
  }

  void send_due() {
    const std::uint64_t now = now_ns();
    while (!due_.empty() && due_.top().first <= now) {
      const std::uint64_t number = due_.top().second;
      due_.pop();
      const auto found = connections_.find(number);
      if (found == connections_.end()) continue;
      if (found->second.unsent.empty() && !tick(number, found->second)) connections_.erase(found);
    }
  }

  const std::string json_ = json_answer(), probe_ = probe_answer();
  const std::string end_ = chunk(last_event) + "0\r\n\r\n";
  std::string event_ =
      chunk(std::string(event_before) + std::string(stamp_digits, '0') + std::string(event_after));
  const std::size_t stamp_at_ = event_.find("t=") + 2;
  std::vector<char> scratch_ = std::vector<char>(read_bytes);
  std::string body_;
  Poller poller_;
  std::vector<net::Fd> listeners_;
  std::unordered_map<std::uint64_t, Connection> connections_;
  std::uint64_t next_ = 1'000;  ///< numbers below are listeners
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace

Status serve_engines(std::span<const std::uint16_t> ports) {
  raise_descriptor_limit(1'000'000);
  Engines engines;
  for (const std::uint16_t port : ports)
    if (auto listening = engines.listen(port); !listening) return listening;
  std::signal(SIGTERM, [](int) { stopped = 1; });
  std::signal(SIGINT, [](int) { stopped = 1; });
  fmt::print("{{\"ports\": [{}]}}\n", fmt::join(engines.ports, ", "));
  std::fflush(stdout);
  engines.run();
  return {};
}

}  // namespace signalbox::bench
