#include "tools/launcher/control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

namespace signalbox::launcher {
namespace {

constexpr std::size_t longest_question = 256;
constexpr Duration answer_time = 5s;

/// A Unix socket's path may be 107 bytes long and a folder's longer, so the folder is named by a descriptor.
struct SocketAddress {
  net::Fd folder;
  sockaddr_un address{};
};

Result<SocketAddress> address_in(const std::string& state_dir) {
  SocketAddress out;
  out.folder = net::Fd(::open(state_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!out.folder.valid())
    return fail(ErrorKind::unavailable, std::generic_category().message(errno), state_dir);
  out.address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/launcher.sock", out.folder.get());
  path.copy(out.address.sun_path, sizeof out.address.sun_path - 1);
  return out;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

void set_timeouts(int fd, Duration longest) {
  timeval limit{};
  limit.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(longest).count();
  limit.tv_usec = (longest % 1s).count() / 1000;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

/// Reads until the end, or until `stop` was read. Nothing on an error or a timeout.
std::optional<std::string> receive(int fd, std::size_t most, std::optional<char> stop) {
  std::string bytes;
  char buffer[4096];
  while (bytes.size() < most) {
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0) return {};
    if (got == 0) break;
    bytes.append(buffer, static_cast<std::size_t>(got));
    if (stop && bytes.find(*stop) != std::string::npos) break;
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::listen(net::Loop& loop, const std::string& state_dir,
                                                             Answer answer) {
  const auto where = address_in(state_dir);
  if (!where) return tl::unexpected(where.error());
  const std::string path = state_dir + "/launcher.sock";
  ::unlink(path.c_str());
  net::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || ::bind(socket.get(), generic(where->address), sizeof where->address) != 0 ||
      ::listen(socket.get(), 16) != 0)
    return fail(ErrorKind::io, std::generic_category().message(errno), path);
  return std::unique_ptr<ControlServer>(new ControlServer(loop, std::move(socket), path, std::move(answer)));
}

ControlServer::ControlServer(net::Loop& loop, net::Fd listener, std::string path, Answer answer)
    : loop_(loop), listener_(std::move(listener)), path_(std::move(path)), answer_(std::move(answer)) {
  loop_.watch_listener(listener_.get(), *this);
}

ControlServer::~ControlServer() {
  loop_.unwatch(listener_.get(), *this);
  ::unlink(path_.c_str());
}

void ControlServer::on_ready(std::uint32_t) {
  const net::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!peer.valid()) return;
  set_timeouts(peer.get(), 500ms);  // only this user can open the folder; a stuck asker must not hold us long
  const auto question = receive(peer.get(), longest_question, '\n');
  if (question) send_all(peer.get(), answer_(std::string_view(*question).substr(0, question->find('\n'))));
}

Result<std::string> ask(const std::string& state_dir, std::string_view question) {
  const auto nobody = [&](std::string what) {
    return fail(ErrorKind::unavailable, std::move(what), state_dir,
                "start the fleet with 'signalbox up CONFIG'; if it was started from another folder, name its "
                "--state-dir");
  };
  const auto where = address_in(state_dir);
  if (!where) return nobody("no fleet was started with this state folder");
  const net::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_timeouts(socket.get(), answer_time);
  if (::connect(socket.get(), generic(where->address), sizeof where->address) != 0) {
    if (errno == EACCES)
      return fail(ErrorKind::denied, "the fleet is another user's", state_dir,
                  "ask as the user who started it");
    return nobody("no launcher listens here");
  }
  auto answer = send_all(socket.get(), fmt::format("{}\n", question)) ? receive(socket.get(), 64u << 20, {})
                                                                      : std::optional<std::string>();
  if (!answer || answer->empty()) return nobody("the launcher does not answer");
  return std::move(*answer);
}

}  // namespace signalbox::launcher
