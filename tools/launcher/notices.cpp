#include "tools/launcher/notices.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

namespace signalbox::launcher {

// An abstract name that the kernel chooses: a path in the state folder may be longer than such a name can be.
Result<std::unique_ptr<Notices>> Notices::listen(net::Loop& loop, Duration limit, Alive alive) {
  net::Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int on = 1;
  socklen_t size = sizeof name;
  if (!socket.valid() || ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name.sun_family) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return fail(ErrorKind::io, std::generic_category().message(errno), "the socket for notices of children");
  const std::string path = "@" + std::string(name.sun_path + 1, size - sizeof name.sun_family - 1);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  ::setenv("WATCHDOG_USEC",
           fmt::format("{}", std::chrono::duration_cast<std::chrono::microseconds>(limit).count()).c_str(),
           1);
  ::unsetenv("WATCHDOG_PID");
  return std::unique_ptr<Notices>(new Notices(loop, std::move(socket), std::move(alive)));
}

Notices::Notices(net::Loop& loop, net::Fd socket, Alive alive)
    : loop_(loop), socket_(std::move(socket)), alive_(std::move(alive)) {
  loop_.watch(socket_.get(), *this);
}

Notices::~Notices() { loop_.unwatch(socket_.get(), *this); }

// Who speaks is told by the kernel: anybody may send to an abstract name, but not as a child of ours.
void Notices::on_ready(std::uint32_t) {
  for (;;) {
    std::array<char, 256> text;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control.data(), message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0) return;
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    if (head == nullptr || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(head), sizeof sender);
    if (std::string_view(text.data(), static_cast<std::size_t>(got)).find("WATCHDOG=1") !=
        std::string_view::npos)
      alive_(sender.pid);
  }
}

}  // namespace signalbox::launcher
