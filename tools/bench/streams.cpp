#include "tools/bench/streams.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <utility>

#include "actors/cluster_router/http/chunked.hpp"
#include "tools/bench/descriptors.hpp"

namespace signalbox::bench {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;
constexpr std::size_t most_opening =
    128;  // connections without a first event, so that no accept queue overflows
constexpr std::size_t stamp_digits = 16;
constexpr std::string_view stamp_mark = "t=", end_mark = "data: [DONE]";

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

struct Client {
  net::Fd fd;
  std::string unsent;
  std::string text;  ///< of the answer, what is not looked at yet
  http::ChunkedDecoder chunks;
  std::uint64_t asked_ns = 0;
  std::uint64_t got = 0;
  bool head_read = false, done_seen = false;
};

class Streams {
 public:
  Streams(const StreamLoad& load, net::Address address)
      : load_(load),
        address_(address),
        deadline_(now_ns() + static_cast<std::uint64_t>(load.longest_s) * 1'000'000'000) {
    std::string body = fmt::format(
        R"({{"model":"{}","stream":true,"messages":[{{"role":"user","content":"events={} every_us={} )",
        load.model, load.events, load.every_us);
    while (body.size() + 4 < load.prompt_bytes) body += "lorem ipsum "[body.size() % 12];
    body += R"("}]})";
    std::string fields;
    for (const std::string& field : load.fields) fields += field + "\r\n";
    request_ = fmt::format(
        "POST {} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n{}",
        load.path, fields, body.size(), body);
    clients_.resize(load.at_once);
  }

  void run() {
    std::array<epoll_event, 512> events;
    while (ended_ < load_.total && now_ns() < deadline_) {
      open_more();
      const std::size_t count = poller_.wait(events.data(), events.size(), 100'000'000);
      for (std::size_t i = 0; i < count; ++i) on_event(events[i]);
    }
    failures_["not done in time"] += load_.total - ended_;
  }

  void report() {
    std::size_t failed = 0;
    std::string reasons;
    for (const auto& [reason, times] : failures_) {
      if (times == 0) continue;
      failed += times;
      reasons += fmt::format("{}\"{}\": {}", reasons.empty() ? "" : ", ", reason, times);
    }
    fmt::print(
        "{{\"streams\": {}, \"failed\": {}, \"reasons\": {{{}}}, \"events\": {}, \"ttft_p50_us\": {:.1f}, "
        "\"ttft_p99_us\": {:.1f}, \"transit_p50_us\": {:.1f}, \"transit_p99_us\": {:.1f}, "
        "\"transit_max_us\": {:.1f}}}\n",
        load_.total, failed, reasons, transit_us_.size(), quantile(ttft_us_, 0.5), quantile(ttft_us_, 0.99),
        quantile(transit_us_, 0.5), quantile(transit_us_, 0.99), quantile(transit_us_, 1.0));
  }

 private:
  void open_more() {
    while (opened_ < clients_.size() && opened_ - had_first_ < most_opening && opened_ < load_.total) {
      if (!open(opened_)) return;
      ++opened_;
      ++asked_;
    }
  }

  bool open(std::size_t number) {
    Client& client = clients_[number];
    client = Client{};
    auto fd = net::start_connect(address_);
    if (!fd) {
      fail(number, fd.error().text());
      return false;
    }
    set_no_delay(*fd);
    client.fd = std::move(*fd);
    ask(client);
    poller_.add(client.fd, EPOLLIN | EPOLLOUT, number);
    return true;
  }

  void ask(Client& client) {
    client.unsent = request_;
    client.asked_ns = now_ns();
    client.got = 0;
    client.chunks = {};
    client.head_read = client.done_seen = false;
  }

  void on_event(const epoll_event& event) {
    Client& client = clients_[event.data.u64];
    if (!client.fd.valid()) return;
    if ((event.events & EPOLLOUT) != 0 && !client.unsent.empty() && !send(event.data.u64, client)) return;
    if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(event.data.u64, client);
  }

  bool send(std::size_t number, Client& client) {
    const ssize_t put = ::send(client.fd.get(), client.unsent.data(), client.unsent.size(), MSG_NOSIGNAL);
    if (put < 0 && errno != EAGAIN) {
      fail(number, "send failed");
      return false;
    }
    if (put > 0) client.unsent.erase(0, static_cast<std::size_t>(put));
    if (client.unsent.empty()) poller_.change(client.fd, EPOLLIN, number);
    return true;
  }

  void read(std::size_t number, Client& client) {
    const ssize_t got = ::recv(client.fd.get(), scratch_.data(), scratch_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return fail(number, client.head_read ? "cut" : "no answer");
    std::string_view bytes(scratch_.data(), static_cast<std::size_t>(got));
    if (!client.head_read) {
      client.text += bytes;
      const std::size_t end = client.text.find("\r\n\r\n");
      if (end == std::string::npos) return;
      if (client.text.size() < 12 || client.text.compare(9, 3, "200") != 0)
        return fail(number, "status " + client.text.substr(9, 3));
      client.head_read = true;
      held_ = client.text.substr(end + 4);
      client.text.clear();
      bytes = held_;
    }
    take(number, client, bytes);
  }

  void take(std::size_t number, Client& client, std::string_view bytes) {
    for (;;) {
      const auto step = client.chunks.next(bytes);
      bytes.remove_prefix(step.consumed);
      client.text += step.data;
      if (step.state == http::ChunkedDecoder::State::failed) return fail(number, "bad chunk");
      if (step.state == http::ChunkedDecoder::State::ended) break;
      if (step.consumed == 0) return look(client);
    }
    look(client);
    if (client.got != load_.events || !client.done_seen) return fail(number, "ended early");
    finished(number, client);
  }

  /// Reads whole events from the text.
  void look(Client& client) {
    const std::uint64_t now = now_ns();
    std::size_t at = 0;
    for (std::size_t end; (end = client.text.find("\n\n", at)) != std::string::npos; at = end + 2) {
      const std::string_view event = std::string_view(client.text).substr(at, end - at);
      if (event.starts_with(end_mark)) client.done_seen = true;
      const std::size_t mark = event.find(stamp_mark);
      if (mark == std::string_view::npos) continue;
      std::uint64_t sent_ns = 0;
      std::from_chars(event.data() + mark + stamp_mark.size(),
                      event.data() + std::min(event.size(), mark + stamp_mark.size() + stamp_digits),
                      sent_ns);
      transit_us_.push_back(static_cast<double>(now - sent_ns) / 1e3);
      if (client.got++ == 0) first(client, now);
    }
    client.text.erase(0, at);
  }

  void first(const Client& client, std::uint64_t now) {
    ttft_us_.push_back(static_cast<double>(now - client.asked_ns) / 1e3);
    if (++had_first_ == clients_.size()) {
      fmt::print("open {}\n", had_first_);
      std::fflush(stdout);
    }
  }

  void finished(std::size_t number, Client& client) {
    ++ended_;
    if (asked_ >= load_.total) return client.fd.reset();
    ++asked_;
    ask(client);
    poller_.change(client.fd, EPOLLIN | EPOLLOUT, number);
  }

  void fail(std::size_t number, const std::string& reason) {
    ++failures_[reason];
    ++ended_;
    clients_[number].fd.reset();
    if (asked_ >= load_.total) return;
    ++asked_;
    open(number);
  }

  const StreamLoad& load_;
  net::Address address_;
  std::uint64_t deadline_;
  std::string request_, held_;
  std::vector<char> scratch_ = std::vector<char>(read_bytes);
  Poller poller_;
  std::vector<Client> clients_;
  std::size_t opened_ = 0, asked_ = 0, had_first_ = 0, ended_ = 0;
  std::vector<double> ttft_us_, transit_us_;
  std::map<std::string, std::size_t> failures_;
};

}  // namespace

Status run_streams(const StreamLoad& load) {
  const auto address = net::resolve_url(load.url);
  if (!address) return tl::unexpected(address.error());
  if (load.at_once == 0 || load.total < load.at_once || load.events == 0)
    return invalid("there must be a stream and an event, and no more at once than in all");
  if (raise_descriptor_limit(load.at_once + 64) < load.at_once + 16)
    return invalid(fmt::format("{} connections are more than the descriptor limit allows", load.at_once));
  Streams streams(load, *address);
  streams.run();
  streams.report();
  return {};
}

}  // namespace signalbox::bench
