// Dispatchers of several event loops beside each other: what they share is exact, whoever counts.
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <thread>

#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {
namespace {

/// Loops of one router, all on this thread.
struct Loops {
  explicit Loops(Fleet& fleet, std::uint32_t count) : shared(std::make_shared<SharedState>(count)) {
    const auto view = fleet.view();
    for (std::uint32_t i = 0; i < count; ++i) {
      DispatcherOptions options;
      options.loop = i;
      options.loops = count;
      options.shared = shared;
      options.seed = mix64(i + 1);
      each.emplace_back(std::move(options)).adopt(view, at(0));
    }
  }
  Begun begin(std::size_t loop, const char* tenant = "all") {
    return each[loop].begin(request(tenant), at(1));
  }

  std::shared_ptr<SharedState> shared;
  std::vector<Dispatcher> each;
};

bool sent(const Begun& begun) { return std::holds_alternative<Forward>(begun.verdict); }
bool waits(const Begun& begun) { return std::holds_alternative<Wait>(begun.verdict); }

Fleet fleet_with(std::uint32_t cap, std::uint32_t depth, std::size_t engines = 1) {
  Fleet fleet;
  fleet.engines(engines);
  fleet.request_class("all", Criticality::standard);
  fleet.policy.limits.in_flight_cap = cap;
  fleet.policy.queue.depth = depth;
  return fleet;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_limit_of_four_admits_four_over_all_loops) {
  Fleet fleet = fleet_with(4, 100);
  Loops loops(fleet, 3);
  std::vector<std::pair<std::size_t, Ticket>> in_flight;
  std::size_t queued = 0;
  for (std::size_t i = 0; i < 12; ++i) {
    const Begun begun = loops.begin(i % 3);
    if (sent(begun)) in_flight.emplace_back(i % 3, begun.ticket);
    queued += waits(begun) ? 1 : 0;
  }
  BOOST_TEST(in_flight.size() == 4u);
  BOOST_TEST(queued == 8u);
  for (Dispatcher& loop : loops.each) BOOST_TEST(!loop.next_ready(at(1)).has_value());

  // A place that one loop frees is found by another, which is told of it.
  const auto [loop, ticket] = in_flight.front();
  loops.each[loop].client_left(ticket, at(2));
  BOOST_TEST(loops.each[loop].waiting_elsewhere() == (0b111u & ~(1u << loop)));
  const std::size_t other = (loop + 1) % 3;
  const auto ready = loops.each[other].next_ready(at(2));
  BOOST_REQUIRE(ready.has_value());
  BOOST_TEST(std::holds_alternative<Forward>(ready->verdict));
  for (Dispatcher& each : loops.each) BOOST_TEST(!each.next_ready(at(2)).has_value());
}

BOOST_AUTO_TEST_CASE(loops_divide_a_queue_without_rest) {
  Fleet fleet = fleet_with(1, 8);
  Loops loops(fleet, 3);
  std::size_t queued = 0, served = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    const Begun begun = loops.begin(i % 3);
    served += sent(begun) ? 1 : 0;
    queued += waits(begun) ? 1 : 0;
  }
  BOOST_TEST(served == 1u);
  BOOST_TEST(queued == 8u);
}

BOOST_AUTO_TEST_CASE(a_session_is_at_home_on_every_loop) {
  Fleet fleet = fleet_with(100, 0, 8);
  Loops loops(fleet, 4);
  std::map<std::uint64_t, EngineIndex> homes;
  for (std::uint64_t session = 1; session <= 50; ++session)
    for (std::size_t loop = 0; loop < 4; ++loop) {
      RequestFacts facts = request("all");
      facts.session_hash = mix64(session);
      const Begun begun = loops.each[loop].begin(facts, at(1));
      BOOST_REQUIRE(sent(begun));
      const EngineIndex engine = std::get<Forward>(begun.verdict).engine;
      BOOST_TEST((homes.emplace(session, engine).first->second == engine));
      loops.each[loop].client_left(begun.ticket, at(1));
    }
  std::set<std::uint32_t> used;
  for (const auto& [session, engine] : homes) used.insert(engine.value);
  BOOST_TEST(used.size() > 3u);
}

BOOST_AUTO_TEST_CASE(what_is_in_flight_follows_its_engine_through_changes_of_the_table) {
  Fleet fleet = fleet_with(2, 100, 2);
  Loops loops(fleet, 2);
  std::vector<Ticket> of_first;
  for (int i = 0; i < 4; ++i) {
    const Begun begun = loops.begin(0);
    BOOST_REQUIRE(sent(begun));
    of_first.push_back(begun.ticket);
  }
  BOOST_TEST(waits(loops.begin(1)));
  // e0 leaves, and a new engine takes its row.
  fleet.table.engines[0].name = EngineName("new");
  fleet.table.content = digest_of("another table");
  const auto view = fleet.view();
  for (Dispatcher& loop : loops.each) loop.adopt(view, at(2));
  const auto first = loops.each[1].next_ready(at(2));
  BOOST_REQUIRE(first.has_value());
  BOOST_TEST((std::get<Forward>(first->verdict).engine == EngineIndex(0)));
  BOOST_TEST(sent(loops.begin(0)));
  BOOST_TEST(waits(loops.begin(0)));
  // e0 comes back: what was sent to it before is not counted any more, though it is still open.
  fleet.table.engines[0].name = EngineName("e0");
  fleet.table.content = digest_of("a third table");
  const auto back = fleet.view(view.get());
  for (Dispatcher& loop : loops.each) loop.adopt(back, at(3));
  for (const Ticket ticket : of_first) loops.each[0].client_left(ticket, at(3));
  std::size_t served = 0;
  for (std::size_t i = 0; i < 20; ++i) served += sent(loops.begin(i % 2)) ? 1 : 0;
  BOOST_TEST(served == 4u);
}

namespace {

/// Loops in virtual time. Whoever frees a place asks for it at once, as the gateway's loops do; the others are woken a moment later.
class Racing {
 public:
  Racing(Fleet& fleet, std::uint32_t count)
      : loops_(fleet, count), served_(count), woken_(count, end_of_time) {}

  void begin(std::size_t loop) {
    const Begun begun = loops_.each[loop].begin(request("all"), now_);
    take(loop, begun.ticket, begun.verdict);
  }
  /// One place after the other ends; each end is a new request at the same loop, so that as many wait as before.
  void run(Duration duration) {
    for (const Instant end = now_ + duration;;) {
      const auto next = std::ranges::min_element(ends_, {}, &End::at);
      const auto pump = std::ranges::min_element(woken_);
      now_ = std::min(next->at, *pump);
      if (now_ >= end) return;
      const auto loop = static_cast<std::size_t>(pump - woken_.begin());
      *pump <= next->at ? ask(loop) : finish(next);
    }
  }
  const std::vector<int>& served() const { return served_; }

 private:
  struct End {
    Instant at;
    std::size_t loop;
    Ticket ticket;
  };
  void take(std::size_t loop, Ticket ticket, const Verdict& verdict) {
    if (!std::holds_alternative<Forward>(verdict)) return;
    ends_.push_back({now_ + from_seconds(rng_.uniform(0.5, 1.5)), loop, ticket});
    ++served_[loop];
  }
  void ask(std::size_t loop) {
    while (const auto ready = loops_.each[loop].next_ready(now_)) take(loop, ready->ticket, ready->verdict);
    woken_[loop] = loops_.each[loop].next_wake();
  }
  void finish(std::vector<End>::iterator which) {
    const End done = *which;
    ends_.erase(which);
    loops_.each[done.loop].client_left(done.ticket, now_);
    begin(done.loop);
    for (std::size_t other = 0; other < woken_.size(); ++other)
      if (loops_.each[done.loop].waiting_elsewhere() & (1ULL << other))
        woken_[other] = std::min(woken_[other], now_ + 50us);
    ask(done.loop);
  }

  Loops loops_;
  Rng rng_{7};
  Instant now_ = at(1);
  std::vector<End> ends_;
  std::vector<int> served_;
  std::vector<Instant> woken_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(loops_that_wait_are_served_alike_whoever_came_first) {
  constexpr std::uint32_t count = 4;
  Fleet fleet = fleet_with(8, 4'000);
  fleet.policy.queue.max_wait = 1h;
  fleet.policy.timeouts.total = 2h;
  Racing racing(fleet, count);
  for (std::size_t loop = 0; loop < count; ++loop)
    for (int i = 0; i < 100; ++i) racing.begin(loop);  // the first takes all places
  racing.run(30s);
  const std::vector<int> before = racing.served();
  racing.run(300s);
  std::vector<int> served = racing.served();
  for (std::size_t loop = 0; loop < count; ++loop) served[loop] -= before[loop];
  const auto [least, most] = std::ranges::minmax(served);
  BOOST_TEST_MESSAGE("of each loop " << served[0] << ", " << served[1] << ", " << served[2] << ", "
                                     << served[3]);
  BOOST_TEST(least > 500);
  BOOST_TEST(most < 1.1 * least);
}

BOOST_AUTO_TEST_CASE(no_race_of_loops_oversteps_a_limit_or_leaves_somebody_waiting) {
  constexpr std::uint32_t count = 4;
  constexpr std::int64_t cap = 3;
  constexpr int requests = 3'000;
  Fleet fleet = fleet_with(cap, 1'000'000, 2);
  fleet.policy.queue.max_wait = 1h;
  fleet.policy.timeouts.total = 2h;
  const auto view = fleet.view();
  const auto shared = std::make_shared<SharedState>(count);
  std::array<std::atomic<std::int64_t>, 2> in_flight{};
  std::atomic<std::int64_t> most{0};
  std::atomic<int> served{0};
  const auto run = [&](std::uint32_t number) {
    DispatcherOptions options;
    options.loop = number;
    options.loops = count;
    options.shared = shared;
    options.seed = number + 1;
    Dispatcher loop(std::move(options));
    loop.adopt(view, at(0));
    Rng rng(number + 1);
    std::vector<std::pair<Ticket, EngineIndex>> open;
    const auto take = [&](Ticket ticket, const Verdict& verdict) {
      const auto* forward = std::get_if<Forward>(&verdict);
      if (forward == nullptr) return;
      const std::int64_t now = ++in_flight[forward->engine.at()];
      for (std::int64_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      open.emplace_back(ticket, forward->engine);
      ++served;
    };
    for (int sent_so_far = 0; sent_so_far < requests || loop.open() > 0;) {
      if (sent_so_far < requests && rng.chance(0.5)) {
        const Begun begun = loop.begin(request("all"), at(1));
        ++sent_so_far;
        take(begun.ticket, begun.verdict);
      } else if (!open.empty()) {
        const std::size_t which = rng.below(open.size());
        const auto [ticket, engine] = open[which];
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
        --in_flight[engine.at()];
        loop.client_left(ticket, at(1));
      }
      while (const auto ready = loop.next_ready(at(1))) take(ready->ticket, ready->verdict);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < count; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(served == requests * static_cast<int>(count));
  BOOST_TEST(most <= cap);
  BOOST_TEST(most == cap);
}

}  // namespace signalbox::routing::test
