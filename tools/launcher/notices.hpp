// What children say of themselves by the datagrams of sd_notify(3): the launcher stands in for systemd.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "actors/cluster_router/net/loop.hpp"
#include "actors/cluster_router/net/stream.hpp"

namespace signalbox::launcher {

class Notices final : private net::Watcher {
 public:
  /// Told the process that says that it lives.
  using Alive = std::function<void(pid_t)>;

  /// Opens the socket and names it, and the time after which silence counts, in the environment that children inherit.
  /// Errors: io.
  static Result<std::unique_ptr<Notices>> listen(net::Loop& loop, Duration limit, Alive alive);
  ~Notices();

 private:
  Notices(net::Loop& loop, net::Fd socket, Alive alive);
  void on_ready(std::uint32_t events) override;

  net::Loop& loop_;
  net::Fd socket_;
  Alive alive_;
};

}  // namespace signalbox::launcher
