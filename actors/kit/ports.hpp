// What a hosted machine's effects reach: the bus, the state folder, the log.
#pragma once

#include <string>

#include "actors/kit/shape/machine.hpp"
#include "messages/base/result.hpp"

namespace signalbox::kit {

/// Implementations are thread-safe: all actors of a process share one.
class Ports {
 public:
  virtual ~Ports() = default;
  /// Durable when it returns well.
  virtual Status persist(const Persist& what) = 0;
  virtual void publish(const schema::Message& message) = 0;
  virtual void log(const LogLine& line) = 0;
};

}  // namespace signalbox::kit
