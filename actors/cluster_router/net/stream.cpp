#include "actors/cluster_router/net/stream.hpp"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace signalbox::net {
namespace {

IoResult failure() {
  return {errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Io::would_block : Io::failed, 0};
}

tl::unexpected<Error> system_failure(std::string_view call, std::string where) {
  return fail(ErrorKind::io, fmt::format("{}: {}", call, std::strerror(errno)), std::move(where));
}

class PlainStream final : public Stream {
 public:
  explicit PlainStream(Fd fd) : fd_(std::move(fd)) {
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  IoResult read(std::span<char> into) override {
    const ssize_t got = ::recv(fd_.get(), into.data(), into.size(), 0);
    if (got > 0) {
      const auto bytes = static_cast<std::size_t>(got);
      return {Io::done, bytes, bytes == into.size()};  // a short read emptied the socket
    }
    return got == 0 ? IoResult{Io::ended, 0} : failure();
  }

  IoResult write(std::string_view first, std::string_view second) override {
    if (second.empty()) return written(::send(fd_.get(), first.data(), first.size(), MSG_NOSIGNAL));
    iovec pieces[2] = {{const_cast<char*>(first.data()), first.size()},
                       {const_cast<char*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    return written(::sendmsg(fd_.get(), &message, MSG_NOSIGNAL));
  }

  void end_writing() override { ::shutdown(fd_.get(), SHUT_WR); }

  void make_close_a_reset() override {
    const linger abort{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
  }

  int fd() const override { return fd_.get(); }

 private:
  static IoResult written(ssize_t bytes) {
    return bytes >= 0 ? IoResult{Io::done, static_cast<std::size_t>(bytes)} : failure();
  }

  Fd fd_;
};

/// Splits "host:port" or "[v6]:port"; `port` keeps its value when there is none.
bool split_authority(std::string_view text, std::string& host, std::uint16_t& port) {
  const std::size_t bracket = text.find(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  host = text.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (colon == std::string_view::npos) return !host.empty();
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return !host.empty() && error == std::errc() && end == digits.data() + digits.size();
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}
int Fd::release() { return std::exchange(fd_, -1); }
void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::unique_ptr<Stream> plain_stream(Fd fd) { return std::make_unique<PlainStream>(std::move(fd)); }

std::string Address::text() const { return fmt::format("{}:{}", host(), port()); }

std::string Address::host() const {
  char out[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, out, sizeof out);
    return fmt::format("[{}]", out);
  }
  ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, out, sizeof out);
  return out;
}

std::uint16_t Address::port() const {
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

Result<Address> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0 || found == nullptr)
    return fail(ErrorKind::not_found,
                fmt::format("no address for host '{}': {}", host, ::gai_strerror(error)));
  Address out;
  std::memcpy(&out.storage, found->ai_addr, found->ai_addrlen);
  out.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return out;
}

Result<Address> resolve_url(std::string_view url) {
  std::string_view rest = url;
  std::uint16_t port = 80;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    port = 443;
  }
  rest = rest.substr(0, rest.find('/'));
  std::string host;
  if (!split_authority(rest, host, port))
    return invalid(fmt::format("'{}' is not an address", url), {},
                   "write host:port, http://host:port or https://host:port");
  return resolve(host, port);
}

Result<Fd> bind_to(const Address& address, bool share_port) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return system_failure("socket", address.text());
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (share_port) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0)
    return system_failure("bind", address.text());
  return fd;
}

Status start_listening(const Fd& fd) {
  constexpr int waiting_connections = 4096;
  if (::listen(fd.get(), waiting_connections) != 0) return system_failure("listen", {});
  return {};
}

Result<Fd> listen_on(const Address& address, bool share_port) {
  auto fd = bind_to(address, share_port);
  if (!fd) return fd;
  if (auto listening = start_listening(*fd); !listening) return tl::unexpected(listening.error());
  return fd;
}

bool steer_connections(const Fd& listener, std::uint32_t index) {
  sock_filter chosen = BPF_STMT(BPF_RET | BPF_K, index);
  const sock_fprog program{1, &chosen};
  return ::setsockopt(listener.get(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) == 0;
}

Result<Address> local_address(const Fd& fd) {
  Address out;
  out.size = sizeof out.storage;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&out.storage), &out.size) != 0)
    return system_failure("getsockname", {});
  return out;
}

Result<Fd> start_connect(const Address& address) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return system_failure("socket", address.text());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 &&
      errno != EINPROGRESS)
    return system_failure("connect", address.text());
  return fd;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace signalbox::net
