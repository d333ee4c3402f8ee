// A TCP relay that can be made to pass nothing: a partition that both ends see as silence.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <charconv>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace signalbox::tests {

class Relay {
 public:
  /// Relays to tcp://127.0.0.1:port.
  explicit Relay(const std::string& target) : target_(address_of(target)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any = address_of("tcp://127.0.0.1:0");
    socklen_t size = sizeof any;
    BOOST_TEST_REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&any), size) == 0);
    BOOST_TEST_REQUIRE(::listen(listener_, 16) == 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &size);
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(any.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stopping_ = true;
    thread_.join();
    for (const int fd : ends_) ::close(fd);
    ::close(listener_);
  }
  Relay(const Relay&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  void set_partitioned(bool partitioned) { partitioned_ = partitioned; }

 private:
  static sockaddr_in address_of(const std::string& endpoint) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const char* const end = endpoint.data() + endpoint.size();
    std::uint16_t port = 0;
    BOOST_TEST_REQUIRE((std::from_chars(endpoint.data() + endpoint.rfind(':') + 1, end, port).ptr == end));
    out.sin_port = htons(port);
    return out;
  }

  void run() {
    while (!stopping_) {
      std::vector<pollfd> fds{{listener_, POLLIN, 0}};
      if (!partitioned_)
        for (const int fd : ends_) fds.push_back({fd, POLLIN, 0});
      ::poll(fds.data(), fds.size(), 5);
      if (partitioned_) continue;
      for (std::size_t i = 1; i < fds.size(); ++i)
        if (fds[i].revents != 0) pump(i - 1);
      if (fds[0].revents != 0) accept();
    }
  }
  void accept() {
    const int near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(far, reinterpret_cast<const sockaddr*>(&target_), sizeof target_) != 0)
      ::shutdown(near, SHUT_RDWR);
    ends_.push_back(near), ends_.push_back(far);
  }
  /// Ends stand in pairs.
  void pump(std::size_t from) {
    char buffer[1 << 16];
    const ssize_t got = ::recv(ends_[from], buffer, sizeof buffer, 0);
    if (got > 0)
      for (ssize_t sent = 0, n = 0; sent < got && n >= 0; sent += n)
        n = ::send(ends_[from ^ 1], buffer + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
    else
      ::shutdown(ends_[from ^ 1], SHUT_RDWR), ::shutdown(ends_[from], SHUT_RDWR);
  }

  sockaddr_in target_;
  int listener_ = -1;
  std::string endpoint_;
  std::vector<int> ends_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> partitioned_ = false;
  std::thread thread_;
};

}  // namespace signalbox::tests
