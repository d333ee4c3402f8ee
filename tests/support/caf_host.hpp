// Hosts a scenario's machine in its real CAF shell, under CAF's test scheduler and its fake clock. The transcript must be
// the plain loop's, letter by letter.
#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include "actors/kit/host.hpp"
#include "tests/support/scenario.hpp"

namespace signalbox::tests {

inline caf::actor_system_config& test_config(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("testing"));
  return config;
}

template <class M>
class CafHost : public kit::Ports {
 public:
  CafHost(const Driver<M>& driver, Instant start) : driver_(driver), system_(test_config(config_)) {
    kit::HostOptions<M> options;
    options.name = "machine under test";
    options.make = driver.make;
    options.ports = std::shared_ptr<kit::Ports>(this, [](kit::Ports*) {});
    options.perform = [this](const typename M::Command& c, const kit::Teller<M>&) {
      line("do", driver_.show_command(c));
    };
    advance(start);
    actor_ = system_.spawn<kit::Host<M>>(std::move(options));
    caf::anon_send(actor_, kit::StartAtom::value);
    settle();
  }
  ~CafHost() override {
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    settle();
    actor_ = nullptr;
  }

  void advance(Instant to) {
    auto& clock = scheduler().clock();
    while (!clock.schedule().empty() && instant_of(clock.schedule().begin()->first) <= to) {
      clock.trigger_timeout();
      settle();
    }
    clock.current_time = decltype(clock.current_time)(to.time_since_epoch());
  }
  template <class Told>
  void tell(const Told& told) {
    if constexpr (std::is_same_v<Told, schema::Delivery>)
      caf::anon_send(actor_, schema::DeliveryPtr(std::make_shared<const schema::Delivery>(told)));
    else
      caf::anon_send(actor_, kit::InputPtr<M>(std::make_shared<const Told>(told)));
    settle();
  }
  const M& machine() const {
    return dynamic_cast<kit::Host<M>*>(caf::actor_cast<caf::abstract_actor*>(actor_))->machine();
  }
  std::string take_text() { return std::exchange(text_, {}); }

  Status persist(const kit::Persist& p) override {
    return line("keep", p.name + " " + show_value(p.bytes)), Status{};
  }
  void publish(const schema::Message& m) override { line("say", show(m)); }
  void log(const kit::LogLine& l) override { line("log", show_log(l)); }

 private:
  template <class Time>
  static Instant instant_of(Time time) {
    return instant_at(std::chrono::duration_cast<Duration>(time.time_since_epoch()));
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }
  Instant clock_now() { return instant_of(scheduler().clock().now()); }
  void settle() {
    while (scheduler().try_run_once()) {
    }
  }
  void line(std::string_view verb, std::string_view text) { text_ += show_line(clock_now(), verb, text); }

  const Driver<M>& driver_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::actor actor_;
  std::string text_;
};

}  // namespace signalbox::tests
