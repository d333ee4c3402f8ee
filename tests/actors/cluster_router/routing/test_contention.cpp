// More requests than places: who is served. A dispatcher between random arrivals and engines that take 0.3 s on average.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <map>

#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

namespace {

struct Sender {
  std::string tenant;
  double rate = 1;             ///< requests a second
  std::uint64_t output = 100;  ///< tokens of each answer
  std::size_t offered = 0, served = 0, refused = 0;
};

class Crowd {
 public:
  Crowd(Fleet& fleet, std::uint64_t seed) : rng_(seed), dispatcher_(options(seed)) {
    dispatcher_.adopt(fleet.view(), at(0));
  }

  void run(std::vector<Sender>& senders, double seconds) {
    std::vector<double> next(senders.size());
    for (std::size_t i = 0; i < senders.size(); ++i) next[i] = rng_.exponential(1 / senders[i].rate);
    while (now_ < seconds) {
      const auto arrival = std::ranges::min_element(next);
      const auto end = std::ranges::min_element(ends_, {}, &End::at);
      const double wake = std::max(now_, to_seconds(dispatcher_.next_wake().time_since_epoch()));
      now_ = std::min({*arrival, end == ends_.end() ? 1e300 : end->at, wake});
      if (now_ == *arrival) {
        const auto i = static_cast<std::size_t>(arrival - next.begin());
        ++senders[i].offered;
        *arrival += rng_.exponential(1 / senders[i].rate);
        const Begun begun = dispatcher_.begin(request(senders[i].tenant, 400), at(now_));
        take(senders, i, begun.ticket, begun.verdict);
      } else if (end != ends_.end() && now_ == end->at) {
        dispatcher_.finished(end->ticket, schema::AttemptEnd::succeeded,
                             {100, 0, senders[end->sender].output}, at(now_));
        ends_.erase(end);
      }
      while (const auto ready = dispatcher_.next_ready(at(now_)))
        take(senders, waiting_.at(ready->ticket.slot), ready->ticket, ready->verdict);
    }
  }

 private:
  struct End {
    double at;
    Ticket ticket;
    std::size_t sender;
  };
  void take(std::vector<Sender>& senders, std::size_t i, Ticket ticket, const Verdict& verdict) {
    if (std::holds_alternative<Refuse>(verdict)) ++senders[i].refused;
    if (std::holds_alternative<Wait>(verdict)) waiting_[ticket.slot] = i;
    if (!std::holds_alternative<Forward>(verdict)) return;
    ++senders[i].served;
    dispatcher_.head(ticket, 200, {}, at(now_));
    ends_.push_back({now_ + rng_.exponential(0.3), ticket, i});
  }

  Rng rng_;
  Dispatcher dispatcher_;
  double now_ = 0;
  std::vector<End> ends_;
  std::map<std::uint32_t, std::size_t> waiting_;
};

/// Serves about 20 requests a second.
Fleet small_fleet() {
  Fleet fleet;
  fleet.engines(3);
  fleet.policy.limits.in_flight_cap = 2;
  fleet.policy.queue.depth = 30;
  return fleet;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tenants_of_a_class_share_its_places_however_much_they_send) {
  struct Row {
    const char* name;
    std::array<double, 3> rates;
    std::array<std::uint64_t, 3> outputs;
    std::array<double, 3> served;  ///< a second, at least; or nearly all that it asked for
  };
  const Row rows[] = {
      {"one floods", {200, 20, 20}, {100, 100, 100}, {5.5, 5.5, 5.5}},
      {"one asks for less than its share", {200, 20, 4}, {100, 100, 100}, {6.5, 6.5, 3.9}},
      {"one asks for longer answers", {50, 50, 50}, {1'000, 100, 100}, {0.5, 8, 8}},
  };
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.name) {
      Fleet fleet = small_fleet();
      fleet.request_class("shared", Criticality::standard);
      fleet.policy.classes[0].tenants = {{"", true}};
      std::vector<Sender> senders;
      for (std::size_t i = 0; i < 3; ++i)
        senders.push_back({"tenant" + std::to_string(i), row.rates[i], row.outputs[i]});
      Crowd(fleet, 1).run(senders, 200);
      for (std::size_t i = 0; i < 3; ++i) {
        const double served = static_cast<double>(senders[i].served) / 200;
        BOOST_TEST_MESSAGE(row.name << ", tenant " << i << ": " << served << " a second");
        const double offered = static_cast<double>(senders[i].offered) / 200;
        BOOST_TEST(served >= std::min(row.served[i], 0.97 * offered));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_class_with_a_floor_gets_it_while_more_critical_requests_are_refused) {
  for (const double floor : {0.0, 0.1, 0.3}) {
    BOOST_TEST_CONTEXT("floor " << floor) {
      Fleet fleet = small_fleet();
      fleet.request_class("gold", Criticality::critical);
      fleet.request_class("bronze", Criticality::sheddable);
      fleet.policy.classes[1].floor_share = floor;
      std::vector<Sender> senders{{"gold", 60}, {"bronze", 20}};
      Crowd(fleet, 2).run(senders, 200);
      const double share = static_cast<double>(senders[1].served) / static_cast<double>(senders[1].offered);
      BOOST_TEST_MESSAGE("floor " << floor << ": " << share << " served");
      BOOST_TEST(senders[0].refused > 0u);
      BOOST_TEST(share >= 0.97 * floor);
      BOOST_TEST(share <= floor + 0.05);
    }
  }
}

}  // namespace signalbox::routing::test
