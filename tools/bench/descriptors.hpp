// What the benchmark's engine and its client share: connections on one epoll, level-triggered, and the clock.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "actors/cluster_router/net/stream.hpp"

namespace signalbox::bench {

/// Monotonic, nanoseconds; the same in all processes of this machine.
std::uint64_t now_ns();

/// An epoll descriptor whose events carry a number.
class Poller {
 public:
  /// Throws std::system_error.
  Poller();
  void add(const net::Fd& fd, std::uint32_t events, std::uint64_t number);
  void change(const net::Fd& fd, std::uint32_t events, std::uint64_t number);
  /// Waits at most this long; none is forever. Returns how many of `into` were filled.
  std::size_t wait(epoll_event* into, std::size_t room, std::int64_t longest_ns);

 private:
  net::Fd fd_;
};

/// Sends small pieces at once.
void set_no_delay(const net::Fd& fd);

/// Room for this many descriptors, as far as the hard limit lets; returns what there is.
std::uint64_t raise_descriptor_limit(std::uint64_t wanted);

}  // namespace signalbox::bench
