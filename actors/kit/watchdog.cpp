#include "actors/kit/watchdog.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace signalbox::kit {

namespace {

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

Watchdog Watchdog::from_environment() {
  const std::string_view limit = setting("WATCHDOG_USEC"), pid = setting("WATCHDOG_PID");
  std::int64_t microseconds = 0;
  std::from_chars(limit.data(), limit.data() + limit.size(), microseconds);
  const bool ours = pid.empty() || pid == std::to_string(::getpid());
  return {std::string(setting("NOTIFY_SOCKET")),
          ours ? std::chrono::duration_cast<Duration>(
                     std::chrono::microseconds(std::max<std::int64_t>(microseconds, 0)))
               : Duration::zero()};
}

void Watchdog::turned(Duration latest) const {
  if (limit_ > Duration::zero() && latest < limit_ / 2) tell("WATCHDOG=1");
}

// A supervisor that does not read must not hold up the loop: what it cannot take is lost, and the next one says the same.
void Watchdog::tell(std::string_view what) const {
  sockaddr_un to{};
  if (socket_.empty() || socket_.size() >= sizeof to.sun_path) return;
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  ::sendto(fd, what.data(), what.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to),
           size);
  ::close(fd);
}

void LoopWatch::add(LastTurn last_turn) {
  const std::lock_guard lock(mutex_);
  loops_.push_back(std::move(last_turn));
}

Duration LoopWatch::latest(Instant now) const {
  const std::lock_guard lock(mutex_);
  Duration out{};
  for (const auto& last_turn : loops_) out = std::max(out, now - last_turn());
  return out;
}

}  // namespace signalbox::kit
