// A dispatcher under random events, tables and policies: what must hold in any order of things.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>

#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"
#include "tests/support/sizes.hpp"

namespace signalbox::routing::test {

using schema::AttemptEnd;
using schema::RefuseReason;

namespace {

constexpr const char* tenants[] = {"gold", "silver", "bronze"};

/// Three classes on the same engines, with little room.
Fleet tight_fleet(Rng& rng, std::size_t engines, std::uint32_t cap) {
  Fleet fleet;
  fleet.request_class("gold", Criticality::critical);
  fleet.request_class("silver", Criticality::standard);
  fleet.request_class("bronze", Criticality::sheddable);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < engines; ++i) order.push_back(i);
  for (std::size_t i = engines; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  for (const std::size_t i : order) fleet.engine("e" + std::to_string(i));
  fleet.policy.limits.in_flight_cap = cap;
  fleet.policy.queue.depth = 4;
  fleet.policy.retry.hedge_tokens = rng.chance(0.7) ? 3'000 : 0;
  return fleet;
}

struct Open {
  Ticket ticket;
  std::size_t tenant = 0;
  EngineIndex engine;  ///< none while it waits
  std::vector<EngineIndex> used;
  bool head = false;
  std::uint32_t attempt = 0;  ///< number of the latest one
  EngineIndex earlier;        ///< valid: so is an earlier one, there, and it is open too
};

/// Plays a gateway that does everything in a random order.
class RandomGateway {
 public:
  RandomGateway(std::uint64_t seed, bool renew) : rng_(seed), renew_(renew), dispatcher_(options(seed)) {
    adopt();
  }

  void step() {
    now_ += rng_.exponential(0.01);
    const double what = rng_.uniform();
    if (what < 0.35)
      arrive();
    else if (what < 0.55)
      on_random(&RandomGateway::fail);
    else if (what < 0.7)
      on_random(&RandomGateway::answer);
    else if (what < 0.9)
      on_random(&RandomGateway::finish);
    else if (what < 0.95)
      on_random(&RandomGateway::leave);
    else if (what < 0.96 && renew_)
      adopt();
    else if (what < 0.98)
      on_random(&RandomGateway::hedge);
    else if (what < 0.99)
      carry();
    if (rng_.chance(0.5)) serve_waiting();
    BOOST_REQUIRE(dispatcher_.open() == open_.size());
    BOOST_REQUIRE(retries_ <=
                  fleet_.policy.retry.budget_ratio * first_ + fleet_.policy.retry.budget_burst + 1e-6);
  }

  void wind_up() {
    while (!open_.empty()) {
      leave(open_.size() - 1);
    }
    BOOST_REQUIRE(dispatcher_.open() == 0u);
    BOOST_REQUIRE(dispatcher_.waiting() == 0u);
    for (const auto& row : dispatcher_.drain(at(now_)).outcomes) {
      BOOST_REQUIRE(row.inflight == 0.0);
      BOOST_REQUIRE(row.inflight_prefill_tokens == 0.0);
      BOOST_REQUIRE(row.inflight_kv_tokens == 0.0);
    }
  }
  std::size_t refused(std::size_t tenant) const { return refused_[tenant]; }
  std::size_t forwarded(std::size_t tenant) const { return forwarded_[tenant]; }

 private:
  void adopt() {
    fleet_ = tight_fleet(rng_, 2 + rng_.below(4), static_cast<std::uint32_t>(1 + rng_.below(4)));
    fleet_.table.content = digest_of("table " + std::to_string(++tables_));
    fleet_.as_of = at(now_);
    if (rng_.chance(0.3))
      fleet_.verdict(EngineIndex(rng_.below(fleet_.table.engines.size())), HealthState::gone);
    dispatcher_.adopt(fleet_.view(), at(now_));
    for (Open& open : open_) open.used.clear();  // rows have new meanings
    waiting_critical_ = {};
  }

  void arrive() {
    const std::size_t tenant = rng_.below(3);
    RequestFacts facts = request(tenants[tenant], rng_.below(20'000));
    facts.session_hash = rng_.below(5);
    for (std::uint64_t i = 0, n = rng_.below(4); i < n; ++i) facts.blocks.push_back(1 + i);
    if (rng_.chance(0.2)) facts.deadline = from_seconds(rng_.uniform(0, 2));
    ++first_;
    const Begun begun = dispatcher_.begin(std::move(facts), at(now_));
    Open open;
    open.ticket = begun.ticket;
    open.tenant = tenant;
    if (std::holds_alternative<Refuse>(begun.verdict)) {
      note_refusal(tenant, as<Refuse>(begun.verdict).reason, now_);
      return;
    }
    open_.push_back(open);
    take(open_.size() - 1, begun.verdict, now_);
  }

  void take(std::size_t i, const Verdict& verdict, double) {
    Open& open = open_[i];
    if (std::holds_alternative<Wait>(verdict)) {
      open.engine = {};
      return;
    }
    if (const auto* refusal = std::get_if<Refuse>(&verdict)) {
      note_refusal(open.tenant, refusal->reason, now_);
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    const EngineIndex engine = as<Forward>(verdict).engine;
    BOOST_REQUIRE(std::ranges::find(open.used, engine) == open.used.end());  // never one that was tried
    BOOST_REQUIRE((fleet_.heard[engine.at()].verdict == nullptr ||
                   fleet_.heard[engine.at()].verdict->state != HealthState::gone));
    open.engine = engine;
    open.used.push_back(engine);
    open.head = false;
    open.attempt = as<Forward>(verdict).attempt;
    ++forwarded_[open.tenant];
    if (as<Forward>(verdict).attempt > 1) ++retries_;
  }

  void on_random(void (RandomGateway::*act)(std::size_t)) {
    if (!open_.empty()) (this->*act)(rng_.below(open_.size()));
  }
  void fail(std::size_t i) {
    Open& open = open_[i];
    if (!open.engine.valid() || open.head) return;
    if (open.earlier.valid()) return end_one_of_two(open, AttemptEnd::reset_before_head);
    constexpr AttemptEnd ends[] = {AttemptEnd::connect_error, AttemptEnd::reset_before_head,
                                   AttemptEnd::first_byte_timeout};
    take(i, dispatcher_.failed(open.ticket, ends[rng_.below(3)], at(now_)), now_);
  }
  void answer(std::size_t i) {
    Open& open = open_[i];
    if (!open.engine.valid() || open.head) return;
    if (open.earlier.valid()) end_one_of_two(open, AttemptEnd::superseded);
    constexpr std::uint16_t statuses[] = {200, 200, 200, 400, 429, 500, 502, 503};
    const auto next = dispatcher_.head(open.ticket, statuses[rng_.below(8)],
                                       rng_.chance(0.2) ? Duration(1s) : Duration::zero(), at(now_));
    if (next) return take(i, *next, now_);
    open.head = true;
    if (rng_.chance(0.8)) dispatcher_.first_byte(open.ticket, at(now_));
  }
  void hedge(std::size_t i) {
    Open& open = open_[i];
    if (!open.engine.valid() || open.head) return;
    const EngineIndex first = open.engine;
    const auto second = dispatcher_.hedge(open.ticket, at(now_));
    if (!second) return;
    BOOST_REQUIRE(open.attempt == 1u && !open.earlier.valid());
    take(i, *second, now_);
    open_[i].earlier = first;
  }
  void end_one_of_two(Open& open, AttemptEnd end) {
    const bool earlier_ends = rng_.chance(0.5);
    dispatcher_.hedge_over(open.ticket, earlier_ends ? 1 : 2, end, 0, at(now_));
    if (!earlier_ends) open.engine = open.earlier;
    open.earlier = {};
  }
  void finish(std::size_t i) {
    Open& open = open_[i];
    if (!open.head) return;
    constexpr AttemptEnd ends[] = {AttemptEnd::succeeded, AttemptEnd::succeeded, AttemptEnd::broken_stream,
                                   AttemptEnd::gap_timeout};
    const Ticket ticket = open.ticket;
    dispatcher_.finished(ticket, ends[rng_.below(4)], {10, 3, 20}, at(now_));
    dispatcher_.finished(ticket, AttemptEnd::succeeded, {}, at(now_));  // told twice: ignored
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void leave(std::size_t i) {
    dispatcher_.client_left(open_[i].ticket, at(now_));
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void carry() {
    const Batch batch = dispatcher_.drain(at(now_));
    for (const auto& row : batch.outcomes) {
      BOOST_REQUIRE(row.inflight >= 0.0);
      BOOST_REQUIRE(row.inflight_prefill_tokens >= 0.0);
      BOOST_REQUIRE(row.inflight_kv_tokens >= 0.0);
    }
  }
  void serve_waiting() {
    while (const auto ready = dispatcher_.next_ready(at(now_))) {
      const auto it = std::ranges::find(open_, ready->ticket, &Open::ticket);
      BOOST_REQUIRE(it != open_.end());
      BOOST_REQUIRE(!it->engine.valid());
      take(static_cast<std::size_t>(it - open_.begin()), ready->verdict, now_);
    }
  }
  void note_refusal(std::size_t tenant, RefuseReason, double) { ++refused_[tenant]; }

  Rng rng_;
  bool renew_;
  Fleet fleet_;
  Dispatcher dispatcher_;
  double now_ = 1;
  std::uint64_t tables_ = 0;
  std::vector<Open> open_;
  std::array<std::size_t, 3> refused_{}, forwarded_{};
  std::map<std::size_t, double> waiting_critical_;
  double first_ = 0, retries_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(dispatcher_under_random_events) {
  constexpr std::uint64_t events = 2'000;
  const std::uint64_t runs = signalbox::tests::size_of_test("dispatcher_under_random_events") / events;
  std::size_t refused = 0, forwarded = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    BOOST_TEST_CONTEXT("run " << run) {
      RandomGateway gateway(run, run % 2 == 0);
      for (std::uint64_t i = 0; i < events; ++i) gateway.step();
      for (std::size_t t = 0; t < 3; ++t) refused += gateway.refused(t), forwarded += gateway.forwarded(t);
      gateway.wind_up();
    }
  }
  BOOST_TEST(refused > 0u);
  BOOST_TEST(forwarded > 0u);
}

BOOST_AUTO_TEST_CASE(no_critical_request_is_refused_while_a_sheddable_one_is_admitted) {
  std::size_t critical_refused = 0, sheddable_refused = 0, sheddable_served = 0;
  for (std::uint64_t run = 0; run < 20; ++run) {
    Rng rng(run);
    Fleet fleet = tight_fleet(rng, 3, 2);
    fleet.policy.queue.max_wait = 500ms;
    Dispatcher d(options(run));
    d.adopt(fleet.view(), at(0));
    struct Waits {
      std::size_t tenant;
      double since;
    };
    std::map<std::uint32_t, Waits> waiting;
    std::vector<std::pair<double, Ticket>> ends;
    double last_sheddable = -1;  // when one was last admitted
    const auto note = [&](std::size_t tenant, double arrived, double now, const Verdict& verdict,
                          Ticket ticket) {
      if (std::holds_alternative<Forward>(verdict)) {
        if (tenant == 2) last_sheddable = now, ++sheddable_served;
        d.head(ticket, 200, {}, at(now));
        ends.emplace_back(now + rng.exponential(0.3), ticket);
      } else if (std::holds_alternative<Wait>(verdict)) {
        waiting[ticket.slot] = {tenant, arrived};
      } else if (tenant == 2) {
        ++sheddable_refused;
      } else if (tenant == 0) {
        ++critical_refused;
        BOOST_REQUIRE_MESSAGE(last_sheddable <= arrived,
                              "a sheddable request was admitted while a critical one waited");
      }
    };
    double next = 0;
    for (int arrived = 0; arrived < 3'000;) {
      const auto end = std::min_element(ends.begin(), ends.end(),
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
      const double wake = d.next_wake() == end_of_time ? 1e300 : to_seconds(d.next_wake().time_since_epoch());
      const double now = std::min({next, end == ends.end() ? 1e300 : end->first, std::max(wake, 0.0)});
      if (now == next) {
        const std::size_t tenant = rng.below(3);
        const Begun begun = d.begin(request(tenants[tenant]), at(now));
        note(tenant, now, now, begun.verdict, begun.ticket);
        ++arrived;
        next += rng.exponential(run % 2 == 0 ? 0.025 : 0.012);  // 2 and 4 times what they can serve
      } else if (end != ends.end() && now == end->first) {
        d.finished(end->second, AttemptEnd::succeeded, {}, at(now));
        ends.erase(end);
      }
      while (const auto ready = d.next_ready(at(now))) {
        const Waits was = waiting.at(ready->ticket.slot);
        waiting.erase(ready->ticket.slot);
        note(was.tenant, was.since, now, ready->verdict, ready->ticket);
      }
    }
  }
  BOOST_TEST(sheddable_served > 0u);
  BOOST_TEST(sheddable_refused > 100u);
  BOOST_TEST_MESSAGE("refused: critical " << critical_refused << ", sheddable " << sheddable_refused
                                          << "; sheddable served " << sheddable_served);
  BOOST_TEST(critical_refused < sheddable_refused / 4);
}

}  // namespace signalbox::routing::test
