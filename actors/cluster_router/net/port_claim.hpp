// SO_REUSEPORT lets any processes of one user share a port in silence. A router and its successor shall; two routers that
// were given one port by mistake shall not: each would get a part of the other's requests.
#pragma once

#include <string>
#include <string_view>

#include "actors/cluster_router/net/stream.hpp"

namespace signalbox::net {

/// Holds a port for all processes that call themselves `who`. It is a name in the kernel (an abstract Unix socket, by
/// network namespace as ports are), gone with its process.
class PortClaim {
 public:
  /// conflict if another `who` holds the address, with its process. Port 0 is nobody's.
  static Result<PortClaim> make(const Address& address, std::string_view who);

 private:
  Fd held_;
};

}  // namespace signalbox::net
