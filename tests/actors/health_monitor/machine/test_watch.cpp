#include <boost/test/unit_test.hpp>

#include "actors/health_monitor/machine/fleet_watch.hpp"

using namespace signalbox;
using namespace signalbox::health_monitor;

namespace {

struct Watched {
  FleetWatch watch;
  kit::AlertBook book;

  void hear(Instant now, schema::Message message) {
    schema::Delivery delivery;
    delivery.message = std::move(message);
    watch.hear(delivery, now);
  }
  void alive(Instant now, std::uint64_t term, std::uint64_t sequence) {
    hear(now, schema::KeepAlive{{{term, ProcessName("o1")}, sequence}, {}, false, 1});
  }
  void beat(Instant now, Role role, std::string_view id, std::uint64_t sequence, std::uint64_t refused = 0,
            Duration lag = {}) {
    schema::Beat out;
    out.role = role, out.id = ProcessName(id), out.loop_lag = lag;
    out.snapshot = {{1, ProcessName("o1")}, sequence}, out.messages_refused = refused;
    hear(now, out);
  }
  bool stands(kit::AlertName name, Instant now) {
    kit::Effects<int> effects;
    watch.alerts(book, "m1", now, effects);
    return book.stands(name);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(nobody_leads) {
  Watched w;
  w.alive(instant_at(1s), 1, 1);
  BOOST_TEST(!w.stands(kit::AlertName::no_leader, instant_at(5s)));
  BOOST_TEST(w.stands(kit::AlertName::no_leader, instant_at(7s)));
  w.alive(instant_at(8s), 2, 1);
  BOOST_TEST(!w.stands(kit::AlertName::no_leader, instant_at(8s)));
  w.watch.forgive(20s);
  BOOST_TEST(!w.stands(kit::AlertName::no_leader, instant_at(29s)), "the monitor slept");
}

BOOST_AUTO_TEST_CASE(leadership_changes_again_and_again) {
  Watched w;
  for (std::uint64_t term = 1; term <= 4; ++term) w.alive(instant_at(term * 1s), term, 1);
  BOOST_TEST(!w.stands(kit::AlertName::leader_flapping, instant_at(5s)), "three changes");
  w.alive(instant_at(5s), 5, 1);
  BOOST_TEST(w.stands(kit::AlertName::leader_flapping, instant_at(5s)));
  w.alive(instant_at(70s), 5, 9);
  BOOST_TEST(!w.stands(kit::AlertName::leader_flapping, instant_at(70s)));
}

BOOST_AUTO_TEST_CASE(a_router_does_not_follow) {
  Watched w;
  for (int second = 1; second <= 12; ++second) {
    const Instant now = instant_at(second * 1s);
    w.alive(now, 1, static_cast<std::uint64_t>(second));
    w.beat(now, Role::cluster_router, "r1", static_cast<std::uint64_t>(std::max(second - 2, 1)));
    w.beat(now, Role::cluster_router, "r2", 2);
    BOOST_TEST(w.stands(kit::AlertName::routers_diverged, now) == (second >= 8), second);
  }
  w.beat(instant_at(13s), Role::cluster_router, "r2", 12);
  BOOST_TEST(!w.stands(kit::AlertName::routers_diverged, instant_at(13s)));
}

BOOST_AUTO_TEST_CASE(a_loop_hangs) {
  Watched w;
  w.beat(instant_at(1s), Role::cluster_router, "r1", 1, 0, 100ms);
  BOOST_TEST(!w.stands(kit::AlertName::loop_late, instant_at(1s)));
  w.beat(instant_at(2s), Role::cluster_router, "r1", 1, 0, 3s);
  BOOST_TEST(w.stands(kit::AlertName::loop_late, instant_at(2s)));
}

BOOST_AUTO_TEST_CASE(somebody_knocks_without_a_key) {
  Watched w;
  w.beat(instant_at(1s), Role::forwarder, "bus-1", 0, 100);
  w.beat(instant_at(2s), Role::forwarder, "bus-1", 0, 105);
  BOOST_TEST(!w.stands(kit::AlertName::authentication_refused, instant_at(2s)));
  w.beat(instant_at(3s), Role::forwarder, "bus-1", 0, 115);
  BOOST_TEST(w.stands(kit::AlertName::authentication_refused, instant_at(3s)));
  w.beat(instant_at(50s), Role::forwarder, "bus-1", 0, 116);
  BOOST_TEST(w.stands(kit::AlertName::authentication_refused, instant_at(50s)));
  w.beat(instant_at(65s), Role::forwarder, "bus-1", 0, 116);
  BOOST_TEST(!w.stands(kit::AlertName::authentication_refused, instant_at(65s)));
}
