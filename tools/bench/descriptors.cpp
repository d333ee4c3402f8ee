#include "tools/bench/descriptors.hpp"

#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace signalbox::bench {
namespace {

void control(const net::Fd& epoll, int what, const net::Fd& fd, std::uint32_t events, std::uint64_t number) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  if (::epoll_ctl(epoll.get(), what, fd.get(), &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

}  // namespace

std::uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

Poller::Poller() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!fd_.valid()) throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

void Poller::add(const net::Fd& fd, std::uint32_t events, std::uint64_t number) {
  control(fd_, EPOLL_CTL_ADD, fd, events, number);
}

void Poller::change(const net::Fd& fd, std::uint32_t events, std::uint64_t number) {
  control(fd_, EPOLL_CTL_MOD, fd, events, number);
}

std::size_t Poller::wait(epoll_event* into, std::size_t room, std::int64_t longest_ns) {
  const timespec longest{longest_ns / 1'000'000'000, longest_ns % 1'000'000'000};
  const int count =
      ::epoll_pwait2(fd_.get(), into, static_cast<int>(room), longest_ns < 0 ? nullptr : &longest, nullptr);
  if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "epoll_pwait2");
  return static_cast<std::size_t>(std::max(count, 0));
}

void set_no_delay(const net::Fd& fd) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::uint64_t raise_descriptor_limit(std::uint64_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(std::max<rlim_t>(limit.rlim_cur, wanted), limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace signalbox::bench
