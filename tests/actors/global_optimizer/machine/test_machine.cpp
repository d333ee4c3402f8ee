#include <boost/test/unit_test.hpp>

#include "tests/actors/global_optimizer/machine/driver.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using testing::driver;

BOOST_AUTO_TEST_CASE(a_leaders_life) { tests::check_transcript("global_optimizer", driver()); }

BOOST_AUTO_TEST_CASE(a_standby_learns_and_takes_over) {
  tests::check_transcript("global_optimizer_standby", driver("41\n"));
}

BOOST_AUTO_TEST_CASE(a_leader_that_cannot_keep_its_term_does_not_lead) {
  Machine machine = driver().make();
  Machine::Effects effects;
  machine.on_wake(instant_at(0s), effects);
  effects = {};
  machine.on_wake(instant_at(1s), effects);
  BOOST_REQUIRE(machine.view().standing.leads);
  BOOST_REQUIRE(effects.persist.size() == 1);
  BOOST_TEST(effects.persist[0].bytes == "1\n");
  Machine::Effects instead;
  machine.on_persist_failed(effects.persist[0], instant_at(1s), instead);
  BOOST_TEST(!machine.view().standing.leads);
  for (const auto& message : instead.publish) BOOST_TEST(std::holds_alternative<schema::Alert>(message));
}

namespace {

/// Wakes a machine when it asks for it until a time, with a disk that may be full.
struct Host {
  Machine machine = driver().make();
  Instant wake = instant_at(0s);
  bool full = true;
  std::vector<std::string> written = {};
  std::vector<schema::Alert> alerts = {};
  std::size_t keep_alives = 0;

  void run_until(Duration end) {
    while (wake <= instant_at(end)) {
      const Instant now = wake;
      Machine::Effects effects;
      machine.on_wake(now, effects);
      perform(std::move(effects), now);
    }
  }
  void hear(const ProcessName& from, schema::Message message, Instant now) {
    schema::Delivery delivery;
    delivery.envelope.source = from;
    delivery.message = std::move(message);
    Machine::Effects effects;
    machine.on(delivery, now, effects);
    perform(std::move(effects), now);
  }

 private:
  void perform(Machine::Effects effects, Instant now) {
    if (full && !effects.persist.empty()) {
      Machine::Effects instead;
      machine.on_persist_failed(effects.persist.front(), now, instead);
      return perform(std::move(instead), now);
    }
    for (const auto& file : effects.persist) written.push_back(file.bytes);
    for (const auto& message : effects.publish) {
      if (const auto* alert = std::get_if<schema::Alert>(&message)) alerts.push_back(*alert);
      keep_alives += std::holds_alternative<schema::KeepAlive>(message) ? 1 : 0;
    }
    if (effects.wake) wake = *effects.wake;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(if_nobody_can_keep_a_term_one_leads_all_the_same_and_says_so) {
  Host host;
  host.run_until(5s);
  BOOST_TEST(!host.machine.view().standing.leads);
  BOOST_TEST(host.keep_alives == 0u);
  host.run_until(8s);
  BOOST_TEST(host.machine.view().standing.leads);
  BOOST_TEST(host.keep_alives > 0u);
  BOOST_TEST(host.written.empty());
  BOOST_REQUIRE(!host.alerts.empty());
  BOOST_TEST(host.alerts.back().name.str() == "term-not-kept");
  host.full = false;
  host.run_until(30s);
  BOOST_TEST(host.machine.view().standing.leads);
  BOOST_TEST(host.written == std::vector<std::string>{"2\n"}, boost::test_tools::per_element());
  BOOST_TEST(!host.alerts.back().raised);
}

BOOST_AUTO_TEST_CASE(while_another_leads_nobody_leads_without_a_durable_term) {
  Host host;
  host.run_until(2s);
  BOOST_TEST(host.alerts.size() == 1u);
  // Another one takes over and dies again: then it is the turn of who can write, once more.
  for (int i = 0; i < 3; ++i)
    host.hear(ProcessName("opt-1"), schema::KeepAlive{{{7, ProcessName("opt-1")}, 1}, {}, false, 1.0},
              instant_at(3s) + i * 1s);
  host.run_until(7s);
  BOOST_TEST(!host.machine.view().standing.leads);
  host.run_until(9s);
  BOOST_TEST(host.keep_alives == 0u);
  host.run_until(20s);
  BOOST_TEST(host.keep_alives > 0u);
}
