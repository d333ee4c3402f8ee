// Leadership by a lease: nobody believes to hold what another may hold, counters rise, and somebody leads once etcd answers.
#include "actors/global_optimizer/machine/tenure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>

#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using Kind = AskEtcd::Kind;
using Turn = Tenure::Turn;

namespace {

Instant at(double s) { return instant_at(from_seconds(s)); }

EtcdAnswer to(const AskEtcd& ask) {
  EtcdAnswer out;
  out.number = ask.number;
  return out;
}

/// What etcd does with a question, at one moment of its own.
class Etcd {
 public:
  EtcdAnswer serve(const AskEtcd& ask, const std::string& from, Instant now) {
    expire(now);
    EtcdAnswer out = to(ask);
    switch (ask.kind) {
      case Kind::grant:
        leases_[++last_lease_] = {now + ask.ttl, ask.ttl};
        out.lease = last_lease_, out.ttl = ask.ttl;
        break;
      case Kind::renew:
        if (const auto found = leases_.find(ask.lease); found != leases_.end())
          found->second.ends = now + found->second.ttl, out.ttl = found->second.ttl;
        break;
      case Kind::release: end(ask.lease); break;
      case Kind::campaign:
        if (!leases_.contains(ask.lease))
          out.fault = "requested lease not found";
        else if (holder_.empty() && revision_ == ask.counter_revision)
          holder_ = from, key_lease_ = ask.lease, counter_ = ask.counter, ++revision_, out.won = true;
        [[fallthrough]];
      case Kind::look: out.holder = holder_, out.counter = counter_, out.counter_revision = revision_;
    }
    return out;
  }
  bool holds(const std::string& who, Instant now) {
    expire(now);
    return holder_ == who;
  }

 private:
  struct Lease {
    Instant ends;
    Duration ttl;
  };
  void end(std::int64_t lease) {
    leases_.erase(lease);
    if (key_lease_ == lease) holder_.clear(), key_lease_ = 0;
  }
  void expire(Instant now) {
    std::vector<std::int64_t> over;
    for (const auto& [id, lease] : leases_)
      if (lease.ends <= now) over.push_back(id);
    for (const auto id : over) end(id);
  }
  std::map<std::int64_t, Lease> leases_;
  std::int64_t last_lease_ = 0, key_lease_ = 0, revision_ = 0;
  std::string holder_;
  std::uint64_t counter_ = 0;
};

/// One that stands, by a clock of its own that began elsewhere and runs a little fast or slow.
struct Candidate {
  std::string name;
  double clock_began = 0, clock_runs = 1;
  Tenure tenure{TenureOptions{2s}};
  bool leads = false;
  Instant paused_until = never_yet;
  Instant clock(Instant now) const {
    return at(clock_began + clock_runs * to_seconds(now.time_since_epoch()));
  }
};

/// Candidates and etcd with a network between them that delays, loses and overtakes.
class World {
 public:
  World(std::uint64_t seed, int candidates) : rng_(seed) {
    for (int i = 0; i < candidates; ++i)
      candidates_.push_back({fmt::format("opt-{}", i), rng_.uniform(0, 1000), rng_.uniform(0.98, 1.02)});
  }
  double loss = 0;
  bool pauses = false, etcd_down = false;
  std::size_t wins = 0;

  void run(Duration time) {
    for (const Instant end = now_ + time; now_ < end; now_ += 10ms) {
      deliver();
      for (Candidate& c : candidates_) turn(c);
      std::size_t leaders = 0;
      for (const Candidate& c : candidates_) leaders += believes(c);
      if (leaders > 1) BOOST_ERROR("two believe to lead at " << to_seconds(now_.time_since_epoch()) << " s");
      for (const Candidate& c : candidates_)
        if (believes(c) && !etcd_.holds(c.name, now_))
          BOOST_ERROR(c.name << " leads, and does not hold the key");
    }
  }
  bool somebody_leads() const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const auto& c) { return believes(c); });
  }
  Candidate& leader() {
    return *std::find_if(candidates_.begin(), candidates_.end(), [&](const auto& c) { return believes(c); });
  }
  Instant now() const { return now_; }

 private:
  struct OnItsWay {
    std::size_t candidate;
    AskEtcd ask;
    std::optional<EtcdAnswer> answer;
  };
  /// By its own clock, were it to speak now.
  bool believes(const Candidate& c) const { return c.leads && !c.tenure.expired(c.clock(now_)); }

  void turn(Candidate& c) {
    if (now_ < c.paused_until) return;
    if (pauses && rng_.chance(0.002)) c.paused_until = now_ + from_seconds(rng_.uniform(0.1, 5));
    const Instant now = c.clock(now_);
    if (c.leads && c.tenure.expired(now)) c.leads = false, c.tenure.resign(now, Duration::zero());
    if (const auto ask = c.tenure.ask(1, now)) send(index_of(c), *ask, {});
    if (pauses && rng_.chance(0.0005)) c.leads = false, c.tenure.resign(now, 1s);
  }
  std::size_t index_of(const Candidate& c) const { return static_cast<std::size_t>(&c - candidates_.data()); }

  void send(std::size_t candidate, const AskEtcd& ask, std::optional<EtcdAnswer> answer) {
    const bool slow = rng_.chance(loss);
    way_.emplace(now_ + from_seconds(slow ? rng_.uniform(0.3, 4) : rng_.uniform(0.001, 0.02)),
                 OnItsWay{candidate, ask, std::move(answer)});
    if (!way_.empty() && rng_.chance(loss)) way_.erase(std::prev(way_.end()));  // lost
    if (!(answer)) give_up_.emplace(now_ + ask.patience, std::pair(candidate, ask));
  }
  void deliver() {
    while (!way_.empty() && way_.begin()->first <= now_) {
      const OnItsWay what = way_.begin()->second;
      way_.erase(way_.begin());
      if (what.answer)
        hear(what.candidate, *what.answer);
      else if (!etcd_down)
        send(what.candidate, what.ask, etcd_.serve(what.ask, candidates_[what.candidate].name, now_));
    }
    while (!give_up_.empty() && give_up_.begin()->first <= now_) {
      const auto [candidate, ask] = give_up_.begin()->second;
      give_up_.erase(give_up_.begin());
      EtcdAnswer none = to(ask);
      none.fault = "timed out";
      hear(candidate, none);
    }
  }
  void hear(std::size_t candidate, const EtcdAnswer& answer) {
    Candidate& c = candidates_[candidate];
    if (now_ < c.paused_until)
      return void(give_up_.emplace(c.paused_until, std::pair(candidate, asked(answer))));
    const Turn turn = c.tenure.hear(answer, c.clock(now_));
    if (turn == Turn::lost) c.leads = false;
    if (turn != Turn::won) return;
    c.leads = true;
    ++wins;
    BOOST_TEST(c.tenure.counter() > last_counter_, "counters rise");
    last_counter_ = c.tenure.counter();
  }
  static AskEtcd asked(const EtcdAnswer& answer) {
    AskEtcd out;
    out.number = answer.number;
    return out;
  }

  Rng rng_;
  Etcd etcd_;
  std::vector<Candidate> candidates_;
  std::multimap<Instant, OnItsWay> way_;
  std::multimap<Instant, std::pair<std::size_t, AskEtcd>> give_up_;
  Instant now_ = at(0);
  std::uint64_t last_counter_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_looks_is_granted_a_lease_and_takes_the_key_with_a_counter_above_all) {
  Tenure t(TenureOptions{2s});
  auto ask = t.ask(58, at(0));
  BOOST_TEST((ask->kind == Kind::look));
  BOOST_TEST(!t.ask(58, at(0.1)));  // one question at a time
  EtcdAnswer seen = to(*ask);
  seen.counter = 41, seen.counter_revision = 7;
  t.hear(seen, at(0.1));
  ask = t.ask(58, at(0.1));
  BOOST_TEST((ask->kind == Kind::grant && ask->ttl == 2s));
  EtcdAnswer granted = to(*ask);
  granted.lease = 9, granted.ttl = 3s;  // etcd grants no shorter ones
  t.hear(granted, at(0.2));
  ask = t.ask(58, at(0.2));
  BOOST_TEST((ask->kind == Kind::campaign && ask->lease == 9));
  BOOST_TEST(ask->counter == 58u);
  BOOST_TEST(ask->counter_revision == 7);
  EtcdAnswer won = to(*ask);
  won.won = true;
  BOOST_TEST((t.hear(won, at(0.3)) == Turn::won));
  BOOST_TEST(t.counter() == 58u);
  // Counted from the question, and a fifth is not used.
  BOOST_TEST(t.holds(at(2.49)));
  BOOST_TEST(t.expired(at(2.51)));
}

BOOST_AUTO_TEST_CASE(a_lease_that_cannot_be_renewed_ends_here_before_it_ends_in_etcd) {
  Tenure t(TenureOptions{2s});
  const auto answer = [&](double when, auto&& fill) {
    const auto ask = t.ask(1, at(when));
    BOOST_TEST_REQUIRE(ask.has_value());
    EtcdAnswer out = to(*ask);
    fill(out);
    return t.hear(out, at(when));
  };
  answer(0, [](auto&) {});
  answer(0, [](auto& a) { a.lease = 1, a.ttl = 2s; });
  BOOST_TEST((answer(0, [](auto& a) { a.won = true; }) == Turn::won));
  answer(0.5, [](auto& a) { a.ttl = 2s; });
  BOOST_TEST(t.holds(at(2.0)));
  BOOST_TEST((answer(1.0, [](auto& a) { a.fault = "refused"; }) == Turn::none));
  BOOST_TEST((t.silence(at(1.5)) == 500ms));
  BOOST_TEST((answer(1.5, [](auto& a) { a.fault = "refused"; }) == Turn::none));
  BOOST_TEST(t.expired(at(2.1)));
  t.resign(at(2.1), Duration::zero());
  BOOST_TEST((t.ask(1, at(2.1))->kind == Kind::release));
}

BOOST_AUTO_TEST_CASE(a_campaign_without_an_answer_may_have_been_won_and_is_given_back) {
  Tenure t(TenureOptions{2s});
  t.hear(to(*t.ask(1, at(0))), at(0));
  EtcdAnswer granted = to(*t.ask(1, at(0)));
  granted.lease = 5, granted.ttl = 2s;
  t.hear(granted, at(0));
  EtcdAnswer silence = to(*t.ask(1, at(0)));
  silence.fault = "timed out";
  BOOST_TEST((t.hear(silence, at(0.5)) == Turn::none));
  const auto ask = t.ask(1, at(0.5));
  BOOST_TEST((ask->kind == Kind::release && ask->lease == 5));
}

BOOST_AUTO_TEST_CASE(while_another_holds_the_key_it_is_looked_at_now_and_then) {
  Tenure t(TenureOptions{2s});
  EtcdAnswer seen = to(*t.ask(1, at(0)));
  seen.holder = "opt-1", seen.counter = 3, seen.counter_revision = 4;
  t.hear(seen, at(0));
  BOOST_TEST((t.due() == at(0.2)));
  BOOST_TEST(!t.ask(1, at(0.1)));
  BOOST_TEST((t.ask(1, at(0.2))->kind == Kind::look));
}

BOOST_AUTO_TEST_CASE(who_resigned_rests_and_takes_nothing_that_was_on_its_way) {
  Tenure t(TenureOptions{2s});
  t.hear(to(*t.ask(1, at(0))), at(0));
  const auto grant = t.ask(1, at(0));
  t.resign(at(0.1), 5s);
  EtcdAnswer granted = to(*grant);
  granted.lease = 5, granted.ttl = 2s;
  t.hear(granted, at(0.2));
  const auto back = t.ask(1, at(0.2));
  BOOST_TEST((back->kind == Kind::release && back->lease == 5));
  t.hear(to(*back), at(0.3));
  BOOST_TEST(!t.ask(1, at(5.0)));
  BOOST_TEST((t.ask(1, at(5.2))->kind == Kind::look));
}

BOOST_AUTO_TEST_CASE(two_never_lead_at_once_and_somebody_does_once_etcd_answers) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    World world(seed, 3);
    world.run(5s);
    BOOST_TEST(world.somebody_leads(), "seed " << seed);
    world.loss = 0.2, world.pauses = true;
    world.run(60s);
    world.etcd_down = true;
    world.run(10s);
    BOOST_TEST(!world.somebody_leads(), "seed " << seed << ": nobody leads without etcd");
    world.loss = 0, world.pauses = false, world.etcd_down = false;
    world.run(20s);
    BOOST_TEST(world.somebody_leads(), "seed " << seed);
    BOOST_TEST(world.wins > 3u);
  }
}

BOOST_AUTO_TEST_CASE(a_leader_that_stops_is_replaced_within_the_lease_and_two_looks) {
  World world(7, 2);
  world.run(5s);
  BOOST_TEST_REQUIRE(world.somebody_leads());
  Candidate& dead = world.leader();
  dead.paused_until = world.now() + 100s;
  const Instant died = world.now();
  while (!world.somebody_leads() || &world.leader() == &dead) world.run(100ms);
  BOOST_TEST(to_seconds(world.now() - died) < 2.6);
}
