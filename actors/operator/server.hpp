// The operators' port of every process, on a thread of its own: /healthz, /readyz, /metrics, and what its role adds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/kit/process.hpp"

namespace signalbox::operators {

/// What is shown at the port; its functions are called on the port's thread.
struct Subject {
  std::function<kit::Standing()> standing;
  std::function<std::string()> metrics;
  std::vector<kit::OperatorPage> pages;
  bool share_port = false;  ///< a router and its successor run side by side for a while
};
/// A process of the kit, which must outlive the server; its pages as they are now.
Subject subject_of(const kit::Process& process);

class Server {
 public:
  /// Listens on "host:port" and serves until destroyed. Errors: invalid, io.
  static Result<std::unique_ptr<Server>> start(const std::string& listen, Subject subject);
  ~Server();

 private:
  class State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace signalbox::operators
