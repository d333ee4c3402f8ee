// The operators' port of every process, on a thread of its own: /healthz, /readyz, /metrics, and what its role adds.
#pragma once

#include <memory>
#include <string>

#include "actors/kit/process.hpp"

namespace signalbox::operators {

class Server {
 public:
  /// Listens on "host:port" and serves until destroyed. `process` must outlive it. Errors: invalid, io.
  static Result<std::unique_ptr<Server>> start(const std::string& listen, const kit::Process& process);
  ~Server();

 private:
  class State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace signalbox::operators
