// The launcher's ear: a Unix socket in the state folder on which other commands ask it for something. One line is the
// question, everything until the end is the answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "actors/cluster_router/net/loop.hpp"
#include "actors/cluster_router/net/stream.hpp"
#include "messages/base/result.hpp"

namespace signalbox::launcher {

class ControlServer final : private net::Watcher {
 public:
  using Answer = std::function<std::string(std::string_view question)>;

  /// Takes over the socket's path; whoever calls this has made sure that no other launcher runs. Errors: io.
  static Result<std::unique_ptr<ControlServer>> listen(net::Loop& loop, const std::string& state_dir,
                                                       Answer answer);
  ~ControlServer();

 private:
  ControlServer(net::Loop& loop, net::Fd listener, std::string path, Answer answer);
  void on_ready(std::uint32_t events) override;

  net::Loop& loop_;
  net::Fd listener_;
  std::string path_;
  Answer answer_;
};

/// Asks the launcher of that state folder. Errors: unavailable if none listens or it does not answer in time, denied if it is
/// another user's.
Result<std::string> ask(const std::string& state_dir, std::string_view question);

}  // namespace signalbox::launcher
