// For tests: they see single steps of the world, and may break them.
#pragma once

#include <memory>
#include <vector>

#include "actors/kit/shape/machine.hpp"
#include "messages/schema/arrivals.hpp"

namespace signalbox::routing {
struct View;
}
namespace signalbox::global_optimizer {
struct Facts;
}

namespace signalbox::simulate {

struct Outcome;
struct ProcessPlace;
class World;

/// Everything passes as it is unless it is overridden.
class Hooks {
 public:
  virtual ~Hooks() = default;

  /// The bus would drop what arrived for `to`; true: it does not.
  virtual bool let_in(const ProcessPlace& /*to*/, const schema::Delivery& /*delivery*/,
                      schema::Unwelcome /*why*/) {
    return false;
  }
  /// A message reaches a machine of `to`; false: it does not.
  virtual bool deliver(const ProcessPlace& /*to*/, schema::Delivery& /*delivery*/) { return true; }
  /// A machine of `of` answered; what is left is performed.
  virtual void answer(const ProcessPlace& /*of*/, std::vector<kit::Persist>& /*keep*/,
                      std::vector<schema::Message>& /*say*/) {}
  /// A message is on the bus.
  virtual void said(const schema::Message& /*message*/, const schema::Envelope& /*envelope*/) {}
  /// An optimizer had its plan judged; it acts on the answer.
  virtual Status verified(const ProcessPlace& /*optimizer*/,
                          const std::vector<schema::RoutingSnapshot>& /*plan*/,
                          const global_optimizer::Facts& /*facts*/, Status judged) {
    return judged;
  }
  /// A router's loop is about to route by this.
  virtual void adopt(const ProcessPlace& /*router*/, std::shared_ptr<const routing::View>& /*view*/) {}
  virtual void started(ProcessPlace& /*process*/) {}
  virtual void ended(const Outcome& /*request*/) {}
  /// At each sample.
  virtual void look(const World& /*world*/) {}
};

}  // namespace signalbox::simulate
