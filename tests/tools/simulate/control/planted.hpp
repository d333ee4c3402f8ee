// Defects that the checkers must find: each breaks one step of one role, from outside its machine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "tests/tools/simulate/control/checker.hpp"

namespace signalbox::simulate::control {

/// Passes everything on to a checker, which sees what is true on the bus; then breaks what the machines get or say.
class Planted : public Hooks {
 public:
  explicit Planted(Checker& checker) : checker_(checker) {}

  bool let_in(const ProcessPlace& to, const schema::Delivery& d, schema::Unwelcome why) override {
    return checker_.let_in(to, d, why);
  }
  bool deliver(const ProcessPlace& to, schema::Delivery& d) override { return checker_.deliver(to, d); }
  void said(const schema::Message& m, const schema::Envelope& e) override { checker_.said(m, e); }
  Status verified(const ProcessPlace& optimizer, const std::vector<schema::RoutingSnapshot>& plan,
                  const global_optimizer::Facts& facts, Status judged) override {
    return checker_.verified(optimizer, plan, facts, std::move(judged));
  }
  void adopt(const ProcessPlace& router, std::shared_ptr<const routing::View>& view) override {
    checker_.adopt(router, view);
  }
  void started(ProcessPlace& process) override { checker_.started(process); }
  void ended(const Outcome& request) override { checker_.ended(request); }
  void look(const World& world) override { checker_.look(world); }

 protected:
  Instant now() const { return world_->now(); }

 private:
  friend struct Bug;
  Checker& checker_;
  const World* world_ = nullptr;

 public:
  void begin(const World& world) { world_ = &world; }
};

struct Bug {
  std::string_view name;
  std::string_view what;
  std::function<std::unique_ptr<Planted>(Checker&)> plant;
  std::uint64_t seed = 1;  ///< that found it once, and is tried first
};

std::span<const Bug> planted_bugs();

}  // namespace signalbox::simulate::control
