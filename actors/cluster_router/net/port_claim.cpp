#include "actors/cluster_router/net/port_claim.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <system_error>

#include "messages/base/digest.hpp"

namespace signalbox::net {

namespace {

bool is_any(std::string_view host) { return host == "0.0.0.0" || host == "[::]"; }

/// signalbox-port/PORT/HOST/WHO/PROCESS
struct Name {
  std::string_view port, host, who, process;
};

constexpr std::string_view mark = "signalbox-port/";

/// The claim in a line of /proc/net/unix; `process` is empty if it holds none.
Name name_in(std::string_view line) {
  const auto at = line.find("@" + std::string(mark));
  if (at == std::string_view::npos) return {};
  std::string_view rest = line.substr(at + 1 + mark.size());
  const auto take = [&rest] {
    const auto slash = rest.find('/');
    const auto part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    return part;
  };
  Name out;
  out.port = take(), out.host = take(), out.who = take(), out.process = take();
  return out;
}

}  // namespace

Result<PortClaim> PortClaim::make(const Address& address, std::string_view who) {
  PortClaim out;
  if (address.port() == 0) return out;
  const std::string port = std::to_string(address.port()), host = address.host();
  const std::string self = digest_of(who).hex().substr(0, 16);
  const std::string name = fmt::format("{}{}/{}/{}/{}", mark, port, host, self, ::getpid());
  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  std::memcpy(path.sun_path + 1, name.data(), std::min(name.size(), sizeof path.sun_path - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  out.held_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!out.held_.valid() || ::bind(out.held_.get(), reinterpret_cast<const sockaddr*>(&path), size) != 0)
    return fail(ErrorKind::io, std::generic_category().message(errno), address.text());
  // Claimed first and looked second, so that of two that start at once at least one sees the other.
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const Name other = name_in(line);
    if (other.process.empty() || other.port != port || other.who == self) continue;
    if (other.host != host && !is_any(other.host) && !is_any(host)) continue;
    return fail(ErrorKind::conflict, fmt::format("another router has this port (process {})", other.process),
                address.text(), "give each router its own address");
  }
  return out;
}

}  // namespace signalbox::net
