// Who is let in, who goes next, how much an engine gets: the parts of admission, one by one.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "actors/cluster_router/routing/admission.hpp"
#include "actors/cluster_router/routing/engine_limits.hpp"
#include "actors/cluster_router/routing/tenant_shares.hpp"
#include "actors/cluster_router/routing/waiting_room.hpp"
#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

namespace {

const EngineIndex e0(0);
const ClassIndex c0(0), c1(1);

Waiting waiting(std::uint32_t slot, Criticality c, double until, std::uint64_t tenant = 1,
                ClassIndex of = c0) {
  return {{slot, 1}, of, c, tenant, false, at(until)};
}

FloorCredits no_floors(std::size_t classes = 2) {
  FloorCredits floors;
  floors.remap(std::vector<ClassIndex>(classes));
  return floors;
}

std::vector<std::uint32_t> order_of(WaitingRoom& room, const TenantShares& shares,
                                    const FloorCredits& floors) {
  std::vector<std::uint32_t> slots;
  while (room.size() > 0) {
    const Ticket ticket = room.next(shares, floors).front().ticket;
    slots.push_back(ticket.slot);
    room.remove(ticket);
  }
  return slots;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_plan_gate_admits_its_share_of_any_run_of_requests) {
  for (const double share : {0.0, 0.01, 0.1, 1 / 3.0, 0.5, 0.77, 0.999, 1.0}) {
    PlanGate gate;
    gate.remap(std::vector<ClassIndex>(1));
    std::vector<int> admitted{0};
    for (int i = 0; i < 3'000; ++i)
      admitted.push_back(admitted.back() + (gate.admit(ClassIndex(0), share) ? 1 : 0));
    for (std::size_t i = 0; i < admitted.size(); i += 7)
      for (std::size_t n : {1u, 10u, 100u, 1000u})
        if (i + n < admitted.size())
          BOOST_REQUIRE(std::abs(admitted[i + n] - admitted[i] - share * static_cast<double>(n)) <
                        1.0 + 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(a_full_queue_gives_up_its_least_for_a_more_critical_newcomer) {
  WaitingRoom room;
  BOOST_TEST(!room.add(waiting(1, Criticality::standard, 5), 2).has_value());
  BOOST_TEST(!room.add(waiting(2, Criticality::standard, 3), 2).has_value());
  BOOST_TEST(room.add(waiting(3, Criticality::standard, 1), 2)->ticket.slot == 3u);
  BOOST_TEST(room.add(waiting(4, Criticality::critical, 9), 2)->ticket.slot == 1u);
  BOOST_TEST((room.earliest() == at(3)));
  BOOST_TEST(!room.expired(at(2.9)).has_value());
  BOOST_TEST(room.expired(at(3))->ticket.slot == 2u);
  BOOST_TEST(room.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_full_queue_gives_up_the_last_of_a_tenant_that_holds_more_of_it) {
  WaitingRoom room;
  for (std::uint32_t slot = 1; slot <= 4; ++slot) room.add(waiting(slot, Criticality::standard, slot, 1), 4);
  BOOST_TEST(room.add(waiting(5, Criticality::standard, 9, 2), 4)->ticket.slot == 4u);
  BOOST_TEST(room.add(waiting(6, Criticality::standard, 9, 2), 4)->ticket.slot == 3u);
  BOOST_TEST(room.add(waiting(7, Criticality::standard, 9, 2), 4)->ticket.slot == 7u);  // two and two
}

BOOST_AUTO_TEST_CASE(who_goes_next) {
  struct Row {
    const char* name;
    std::vector<Waiting> who;
    double used_by_1;  ///< tokens of tenant 1 in class 0
    bool owed;         ///< class 1 its floor
    std::vector<std::uint32_t> order;
  };
  constexpr auto critical = Criticality::critical, standard = Criticality::standard,
                 sheddable = Criticality::sheddable;
  const Row rows[] = {
      {"the earlier deadline", {waiting(1, standard, 5), waiting(2, standard, 3)}, 0, false, {2, 1}},
      {"the more critical", {waiting(1, standard, 3), waiting(2, critical, 5)}, 0, false, {2, 1}},
      {"of another class by deadline",
       {waiting(1, standard, 3, 1, c1), waiting(2, standard, 5), waiting(3, standard, 2)},
       0,
       false,
       {3, 1, 2}},
      {"the tenant that was served less",
       {waiting(1, standard, 3, 1), waiting(2, standard, 5, 2)},
       100,
       false,
       {2, 1}},
      {"alike tenants by deadline",
       {waiting(1, standard, 3, 1), waiting(2, standard, 5, 2)},
       0,
       false,
       {1, 2}},
      {"the class that is owed",
       {waiting(1, critical, 3), waiting(2, sheddable, 5, 1, c1), waiting(3, critical, 4)},
       0,
       true,
       {2, 1, 3}},
  };
  for (const Row& row : rows) {
    WaitingRoom room;
    for (const Waiting& w : row.who) room.add(w, 10);
    TenantShares shares;
    shares.charge(c0, 1, row.used_by_1, at(0));
    shares.charge(c0, 2, 10, at(0));
    if (row.used_by_1 == 0) shares.charge(c0, 1, 10, at(0));
    FloorCredits floors = no_floors();
    if (row.owed) floors.offered(c1, 1.0);
    BOOST_TEST(order_of(room, shares, floors) == row.order, row.name);
  }
}

BOOST_AUTO_TEST_CASE(a_room_under_random_events_loses_nobody) {
  Rng rng(4);
  WaitingRoom room;
  TenantShares shares;
  FloorCredits floors = no_floors(3);
  std::map<std::uint32_t, Waiting> truth;
  for (std::uint32_t slot = 1; slot < 20'000; ++slot) {
    const Waiting w{{slot, 1},    ClassIndex(rng.below(3)), static_cast<Criticality>(rng.below(3)),
                    rng.below(4), rng.chance(0.1),          at(rng.uniform(0, 100))};
    truth[slot] = w;
    if (const auto given_up = room.add(w, 6)) BOOST_REQUIRE(truth.erase(given_up->ticket.slot) == 1u);
    if (rng.chance(0.4) && !truth.empty()) {
      auto gone = std::next(truth.begin(), static_cast<std::ptrdiff_t>(rng.below(truth.size())));
      room.remove(gone->second.ticket);
      truth.erase(gone);
    }
    BOOST_REQUIRE(room.size() == truth.size());
    if (truth.empty()) continue;
    const auto least = std::ranges::min_element(truth, {}, [](const auto& t) { return t.second.until; });
    BOOST_REQUIRE((room.earliest() == least->second.until));
    const Waiting& first = room.next(shares, floors).front();
    for (const auto& [other, waits] : truth) BOOST_REQUIRE(waits.criticality <= first.criticality);
    shares.charge(first.request_class, first.tenant, 5, at(slot * 0.1));
  }
}

BOOST_AUTO_TEST_CASE(what_a_tenant_used_is_half_forgotten_after_each_half_life) {
  TenantShares shares;
  shares.charge(c0, 1, 100, at(0));
  shares.charge(c0, 2, 50, at(TenantShares::half_life_s));
  BOOST_TEST(shares.used(c0, 1) == shares.used(c0, 2), boost::test_tools::tolerance(1e-9));
  BOOST_TEST(shares.used(c1, 1) == 0.0);
  // Long after, when all sums have been brought back several times.
  shares.charge(c0, 1, 100, at(100'000));
  shares.charge(c0, 2, 100, at(100'000));
  BOOST_TEST(shares.used(c0, 1) == shares.used(c0, 2), boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(the_tenants_that_are_remembered_are_bounded_and_the_busiest_are_kept) {
  TenantShares shares;
  for (std::uint64_t tenant = 1; tenant <= 3 * TenantShares::most_tenants; ++tenant) {
    shares.charge(c0, tenant, 1, at(1));
    if (tenant % 100 == 0) shares.charge(c0, 1, 10, at(1));
  }
  BOOST_TEST(shares.size() <= TenantShares::most_tenants);
  BOOST_TEST(shares.used(c0, 1) > 1'000.0);
}

BOOST_AUTO_TEST_CASE(a_floor_is_owed_its_share_of_what_is_offered_and_never_much_at_once) {
  FloorCredits floors = no_floors();
  int admitted = 0;
  for (int i = 0; i < 1'000; ++i) {
    floors.offered(c0, 0.05);
    if (!floors.owes(c0)) continue;
    floors.admitted(c0);
    ++admitted;
  }
  BOOST_TEST(admitted == 50);
  for (int i = 0; i < 1'000; ++i) floors.offered(c0, 1.0);
  for (admitted = 0; floors.owes(c0); ++admitted) floors.admitted(c0);
  BOOST_TEST(admitted == 8);
  BOOST_TEST(!floors.owes(c1));
}

namespace {

/// A closed loop around one engine that serves `slots` requests at once, each for 5 s on average, behind a queue of its own:
/// as many are sent as the limit allows.
class ClosedLoop {
 public:
  explicit ClosedLoop(std::uint64_t seed) : rng_(seed) { limits_.remap(std::vector<EngineIndex>(1)); }

  /// For so many seconds; the limit after them.
  std::int64_t run(std::size_t slots, double seconds, Duration target = 500ms) {
    free_.resize(slots, now_);
    turns_ = idle_ = queued_ = 0;
    for (const double until = now_ + seconds; now_ < until; now_ += 0.01) {
      step(target);
      const auto load = static_cast<double>(open_.size()), room = static_cast<double>(slots);
      ++turns_;
      idle_ += std::max(0.0, room - load) / room;
      queued_ += std::max(0.0, load - room) / room;
    }
    return limits_.limit(e0);
  }
  /// Of the last run, as shares of the slots: how much was idle, how much was queued, on average.
  double idle() const { return idle_ / turns_; }
  double queued() const { return queued_ / turns_; }

 private:
  static constexpr double first_token_s = 0.1;
  struct Sent {
    double began, first, ends;
    std::int64_t ahead;
    bool answered = false;
  };
  void step(Duration target) {
    std::erase_if(open_, [&](const Sent& s) { return s.ends <= now_; });
    for (Sent& s : open_) {
      if (s.answered || s.first > now_) continue;
      s.answered = true;
      limits_.answered(e0, {at(s.began), s.first - s.began, first_token_s, s.ahead, true}, target, at(now_));
    }
    const std::int64_t limit = std::min<std::int64_t>(256, limits_.limit(e0));
    while (static_cast<std::int64_t>(open_.size()) < limit) {
      const auto slot = std::ranges::min_element(free_);
      const double start = std::max(now_, *slot);
      *slot = start + rng_.uniform(2.5, 7.5);
      const auto ahead = static_cast<std::int64_t>(open_.size());
      open_.push_back({now_, start + first_token_s, *slot, ahead});
      limits_.sent(e0, ahead + 1, limit, at(now_));
    }
  }

  Rng rng_;
  EngineLimits limits_;
  double now_ = 1;
  double turns_ = 0, idle_ = 0, queued_ = 0;
  std::vector<double> free_;
  std::vector<Sent> open_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_gets_as_much_as_does_not_queue_there) {
  for (const std::size_t slots : {4u, 16u, 64u}) {
    BOOST_TEST_CONTEXT(slots << " slots") {
      ClosedLoop loop(slots);
      loop.run(slots, 400);  // from a queue of 256
      loop.run(slots, 600);
      BOOST_TEST_MESSAGE(slots << " slots: idle " << loop.idle() << ", queued " << loop.queued());
      BOOST_TEST(loop.idle() < 0.03);
      BOOST_TEST(loop.queued() < 0.5 + 2.0 / static_cast<double>(slots));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_limit_rises_again_when_the_engine_can_do_more) {
  ClosedLoop loop(1);
  BOOST_TEST(loop.run(8, 400) < 20);
  BOOST_TEST(loop.run(64, 60) >= 60);
  BOOST_TEST(loop.run(64, 20, 0s) == EngineLimits::none);  // switched off
}

BOOST_AUTO_TEST_CASE(an_engine_that_is_slower_than_anybody_said_is_not_taken_for_a_queue) {
  for (const bool known : {false, true}) {
    BOOST_TEST_CONTEXT("known " << known) {
      EngineLimits limits;
      limits.remap(std::vector<EngineIndex>(1));
      // Nothing queues, yet every first byte takes five times as long as declared.
      for (int i = 0; i < 4'000; ++i) {
        limits.sent(e0, 3, limits.limit(e0), at(i * 0.1));
        limits.answered(e0, {at(i * 0.1 - 5), 5.0, 1.0, 2, known}, 500ms, at(i * 0.1));
      }
      BOOST_TEST(limits.limit(e0) >= 3);
    }
  }
}

BOOST_AUTO_TEST_CASE(retry_after_is_the_time_to_drain_within_its_bounds) {
  Rng rng(1);
  DrainRate rate;
  const policy::Queue bounds;
  BOOST_TEST((rate.retry_after(0, bounds, at(0), rng) == bounds.retry_after_high));  // nothing leaves
  for (int i = 0; i < 1'000; ++i) rate.left(at(i * 0.1));                            // ten a second
  for (int i = 0; i < 100; ++i) {
    const double wait = to_seconds(rate.retry_after(99, bounds, at(100), rng));
    BOOST_TEST((wait >= 8 && wait <= 13), wait);
    BOOST_TEST(wait == std::round(wait));
  }
  BOOST_TEST((rate.retry_after(0, bounds, at(100), rng) == 1s));
}

}  // namespace signalbox::routing::test
