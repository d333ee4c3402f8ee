// A machine whose leadership is a lease in etcd.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>

#include "actors/global_optimizer/machine/machine.hpp"
#include "tests/support/small_fleet.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;

namespace {

Instant at(double s) { return instant_at(from_seconds(s)); }

/// One optimizer, and an etcd that answers at once unless it is down.
class Alone {
 public:
  bool etcd_down = false;
  std::vector<schema::KeepAlive> keep_alives;
  std::vector<schema::Alert> alerts;
  std::size_t files = 0;
  Machine machine = make();

  /// Serves its wakes until then; a router's beats say that it has this version, unless nobody is heard.
  void run_until(double end, bool heard = true) {
    while (now_ < at(end)) {
      if (now_ >= wake_) act([&](Machine::Effects& e) { machine.on_wake(now_, e); });
      if (heard && now_.time_since_epoch() % 500ms == Duration::zero())
        beat(Role::cluster_router, "router", follows);
      now_ += 50ms;
    }
  }
  void beat(Role role, std::string_view id, SnapshotVersion snapshot) {
    schema::Beat beat;
    beat.role = role, beat.id = ProcessName(id), beat.snapshot = snapshot;
    schema::Delivery delivery;
    delivery.envelope.source = beat.id;
    delivery.message = beat;
    act([&](Machine::Effects& e) { machine.on(delivery, now_, e); });
  }
  kit::Standing standing() const { return machine.view().standing; }
  SnapshotVersion follows;

 private:
  static Machine make() {
    Options o;
    o.id = ProcessName("opt-1");
    o.table = tests::small_table();
    o.etcd = TenureOptions{2s};
    return Machine(std::move(o));
  }
  void act(const std::function<void(Machine::Effects&)>& f) {
    Machine::Effects effects;
    f(effects);
    files += effects.persist.size();
    for (const auto& message : effects.publish) {
      if (const auto* alive = std::get_if<schema::KeepAlive>(&message)) keep_alives.push_back(*alive);
      if (const auto* alert = std::get_if<schema::Alert>(&message)) alerts.push_back(*alert);
    }
    if (effects.wake) wake_ = *effects.wake;
    for (const auto& command : effects.commands)
      if (const auto* ask = std::get_if<AskEtcd>(&command))
        act([&](Machine::Effects& e) { machine.on(Machine::Input(answer(*ask)), now_, e); });
  }
  EtcdAnswer answer(const AskEtcd& ask) {
    EtcdAnswer out;
    out.number = ask.number;
    if (etcd_down) return out.fault = "connection refused", out;
    out.counter = counter_, out.counter_revision = static_cast<std::int64_t>(counter_);
    out.lease = 5, out.ttl = 2s;
    if (ask.kind == AskEtcd::Kind::campaign) out.won = true, counter_ = ask.counter;
    return out;
  }
  Instant now_ = at(0), wake_ = at(0);
  std::uint64_t counter_ = 40;
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_leads_in_a_term_of_etcds_counter_and_needs_no_disk_for_it) {
  Alone a;
  a.run_until(0.9);
  BOOST_TEST(!a.standing().leads);  // it listens first
  a.run_until(5);
  BOOST_TEST(a.standing().leads);
  BOOST_TEST(a.standing().term.counter == 41u);
  BOOST_TEST(a.keep_alives.size() > 2u);
  BOOST_TEST(a.files == 0u);
}

BOOST_AUTO_TEST_CASE(its_term_is_above_what_the_fleet_has_seen) {
  Alone a;
  a.beat(Role::health_monitor, "monitor", {});
  a.follows = {{57, ProcessName("opt-2")}, 3};
  a.run_until(5);
  BOOST_TEST(a.standing().term.counter == 58u);
}

BOOST_AUTO_TEST_CASE(without_etcd_it_stops_before_its_lease_ends_says_why_and_leads_again_later) {
  Alone a;
  a.run_until(5);
  const std::size_t said = a.keep_alives.size();
  a.etcd_down = true;
  a.run_until(6);
  BOOST_TEST(a.standing().leads);
  a.run_until(7);  // renewed at 4.5 s or later, and good for 1.6 s
  BOOST_TEST(!a.standing().leads);
  const std::size_t meanwhile = a.keep_alives.size();
  BOOST_TEST(meanwhile <= said + 2);
  a.run_until(12);
  BOOST_TEST(a.keep_alives.size() == meanwhile);
  BOOST_TEST_REQUIRE(!a.alerts.empty());
  BOOST_TEST(a.alerts.back().name.str() == "coordination-lost");
  a.etcd_down = false;
  a.run_until(15);
  BOOST_TEST(a.standing().leads);
  BOOST_TEST(a.standing().term.counter == 42u);
  BOOST_TEST(!a.alerts.back().raised);
}

BOOST_AUTO_TEST_CASE(a_leader_that_reaches_etcd_and_not_the_bus_gives_its_lease_back) {
  Alone a;
  a.run_until(5);
  BOOST_TEST(a.standing().leads);
  a.run_until(9.5, false);
  BOOST_TEST(!a.standing().leads);
}
