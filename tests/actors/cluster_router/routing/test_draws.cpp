// How decide() follows the plan: its draws, and where load ends up when everything is as planned.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "actors/cluster_router/routing/decide.hpp"
#include "messages/base/rng.hpp"
#include "tests/actors/cluster_router/routing/allocations.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

namespace {

/// All that decide() reads, idle.
struct Bench {
  explicit Bench(Fleet& fleet) : view(fleet.view()), cache(10'000) {
    const std::vector<EngineIndex> fresh(view->engines.size());
    loads.remap(fresh);
    penalties.remap(fresh);
    cache.resize(fresh.size(), false);
    for (std::size_t e = 0; e < fresh.size(); ++e) cache.set_depth(EngineIndex(e), 100);
  }
  Surroundings around() const { return {*view, loads, penalties, cache}; }

  std::shared_ptr<const View> view;
  LoadTable loads;
  Penalties penalties;
  CacheIndex cache;
};

Ask plain_ask() {
  Ask ask;
  ask.request_class = ClassIndex(0);
  ask.prompt_tokens = ask.uncached_tokens = 500;
  ask.output_tokens = 200;
  ask.context_tokens = 600;
  return ask;
}

/// Upper 0.001 quantile of chi-square with k degrees of freedom (Wilson and Hilferty, 1931).
double chi_square_limit(double k) {
  constexpr double z = 3.0902;
  const double t = 1 - 2 / (9 * k) + z * std::sqrt(2 / (9 * k));
  return k * t * t * t;
}

double chi_square(const std::vector<double>& seen, const std::vector<double>& share) {
  const double n = std::accumulate(seen.begin(), seen.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (share[i] > 0) sum += (seen[i] - n * share[i]) * (seen[i] - n * share[i]) / (n * share[i]);
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(candidates_are_drawn_by_the_weights_of_a_frozen_snapshot) {
  Fleet fleet;
  fleet.engines(20).request_class("t", Criticality::standard);
  std::vector<double> weights;
  for (int e = 0; e < 20; ++e) weights.push_back(e % 5 == 4 ? 0 : 1 + e);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  fleet.weights(ClassIndex(0), weights);
  const Bench bench(fleet);

  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    std::vector<double> seen(20);
    Rng rng(seed);
    Decision decision;
    for (int i = 0; i < 20'000; ++i) {
      decide(bench.around(), plain_ask(), {}, at(1), rng, decision);
      for (const Candidate& c : decision.considered()) {
        seen[c.engine.at()] += c.draws;
        BOOST_REQUIRE(std::abs(static_cast<double>(c.weight) - weights[c.engine.at()]) < 1e-6);
      }
    }
    BOOST_TEST(std::accumulate(seen.begin(), seen.end(), 0.0) == 80'000.0);
    BOOST_TEST(chi_square(seen, weights) < chi_square_limit(15), "seed " << seed);
    for (int e = 4; e < 20; e += 5) BOOST_TEST(seen[static_cast<std::size_t>(e)] == 0.0);
    // The test can fail: even draws are far from these weights.
    std::vector<double> even(20, 0.0);
    for (int e = 0; e < 20; ++e)
      if (e % 5 != 4) even[static_cast<std::size_t>(e)] = 80'000.0 / 16;
    BOOST_TEST(chi_square(even, weights) > chi_square_limit(15));
  }
}

// The far engine is 1 ms away and idle; the near one serves 8 requests. A request of 500 tokens and its answer of 200 are 52 kB.
BOOST_AUTO_TEST_CASE(what_leaving_a_region_costs_by_policy_counts_like_latency) {
  const auto chosen = [](double egress, std::string_view region) {
    Fleet fleet;
    fleet.policy.objective.weights.egress = egress;
    fleet.request_class("t", Criticality::standard);
    const EngineIndex near = fleet.engine("near"), far = fleet.engine("far", fleet.cluster("there", 0.001));
    fleet.table.clusters[1].region = DomainName(std::string(region));
    fleet.signal(near, at(1), 8, 0, 0.1);
    fleet.weights(ClassIndex(0), {0.5, 0.5});
    const Bench bench(fleet);
    Rng rng(1);
    Decision decision;
    decide(bench.around(), plain_ask(), {}, at(1), rng, decision);
    for (const Candidate& c : decision.considered())
      if (c.engine == far) {
        const double leaving = region == "r1" ? 0 : egress * (500 * 4 + 200 * 250) / 1e6;
        BOOST_TEST(c.cost.network == 0.001 + leaving, boost::test_tools::tolerance(1e-12));
      }
    return decision.engine == far;
  };
  BOOST_TEST(chosen(0, "r2"));
  BOOST_TEST(chosen(0.2, "r2"));   // 10 ms
  BOOST_TEST(!chosen(100, "r2"));  // 5 s
  BOOST_TEST(chosen(100, "r1"));   // it is no other region
}

BOOST_AUTO_TEST_CASE(half_of_the_draws_look_past_an_old_plan) {
  Fleet fleet;
  fleet.engines(4).request_class("t", Criticality::standard);
  fleet.weights(ClassIndex(0), {0.5, 0.5, 0, 0});  // two came back after it was made
  const Bench bench(fleet);
  const double warn = to_seconds(fleet.policy.stale.snapshot_warn);
  const auto drawn = [&](double now) {
    std::vector<double> seen(4);
    Rng rng(1);
    Decision decision;
    for (int i = 0; i < 20'000; ++i) {
      decide(bench.around(), plain_ask(), {}, at(now), rng, decision);
      BOOST_REQUIRE(decision.planned);
      for (const Candidate& c : decision.considered()) seen[c.engine.at()] += c.draws;
    }
    return seen;
  };
  const std::vector<double> fresh = drawn(warn - 0.1), old = drawn(warn + 0.1);
  BOOST_TEST(fresh[2] + fresh[3] == 0);
  BOOST_TEST(chi_square(old, {0.375, 0.375, 0.125, 0.125}) < chi_square_limit(3));
}

BOOST_AUTO_TEST_CASE(without_a_plan_draws_are_even_and_ramped_engines_get_less) {
  Fleet fleet;
  fleet.engines(6).request_class("t", Criticality::standard);
  fleet.verdict(EngineIndex(5), HealthState::starting, 0.25);
  const Bench bench(fleet);
  std::vector<double> seen(6);
  Rng rng(1);
  Decision decision;
  for (int i = 0; i < 20'000; ++i) {
    decide(bench.around(), plain_ask(), {}, at(1), rng, decision);
    BOOST_REQUIRE(!decision.planned);
    for (const Candidate& c : decision.considered()) seen[c.engine.at()] += c.draws;
  }
  const double whole = 1 / 5.25;
  BOOST_TEST(chi_square(seen, {whole, whole, whole, whole, whole, 0.25 * whole}) < chi_square_limit(5));
}

BOOST_AUTO_TEST_CASE(a_penalised_engine_is_drawn_in_proportion_and_served_when_it_is_the_last) {
  Fleet fleet;
  fleet.engines(2).request_class("t", Criticality::standard);
  fleet.policy.routing.draws = 1;
  Bench bench(fleet);
  bench.penalties.failure(EngineIndex(0), policy::FailureKind::connect, at(1));
  int served = 0;
  Rng rng(1);
  Decision decision;
  for (int i = 0; i < 10'000; ++i) {
    decide(bench.around(), plain_ask(), {}, at(1), rng, decision);
    served += decision.engine.value == 0 ? 1 : 0;
  }
  // Of equal weights 1 and 0.2 that is a sixth.
  BOOST_TEST(std::abs(served / 10'000.0 - 1 / 6.0) < 0.012);
  Tried tried;
  tried.push(EngineIndex(1));
  decide(bench.around(), plain_ask(), tried, at(1), rng, decision);
  BOOST_TEST(decision.engine.value == 0u);
}

BOOST_AUTO_TEST_CASE(deciding_does_not_allocate) {
  Fleet fleet;
  fleet.engines(100).request_class("t", Criticality::standard);
  fleet.weights(ClassIndex(0), std::vector<double>(100, 0.01));
  Bench bench(fleet);
  PromptBlocks blocks{11, 12, 13, 14};
  bench.cache.sent(EngineIndex(3), blocks);
  bench.penalties.failure(EngineIndex(4), policy::FailureKind::reset, at(0.5));
  Ask ask = plain_ask();
  ask.blocks = blocks;
  ask.home = EngineIndex(7);
  Rng rng(1);
  Decision decision;
  const std::size_t before = allocations();
  for (int i = 0; i < 1'000; ++i) decide(bench.around(), ask, {}, at(1), rng, decision);
  BOOST_TEST(allocations() == before);
  std::vector<int> counted(1);  // the counter counts
  BOOST_TEST(allocations() > before);
}

BOOST_AUTO_TEST_CASE(costs_rise_with_load_and_fall_with_what_is_cached) {
  Rng rng(7);
  for (int i = 0; i < 10'000; ++i) {
    EngineFacts facts;
    facts.a = rng.uniform(0.001, 0.1);
    facts.b = rng.uniform(1e-5, 1e-3);
    facts.k = rng.uniform(0, 1e-7);
    facts.c = rng.uniform(1e-6, 1e-3);
    facts.max_batch = rng.chance(0.5) ? 0 : rng.uniform(1, 300);
    facts.kv_tokens = rng.chance(0.2) ? 0 : rng.uniform(1'000, 1e6);
    facts.plan_price = rng.chance(0.3) ? unknown : rng.uniform(0, 100);
    Ask ask = plain_ask();
    ask.prompt_tokens = static_cast<float>(rng.uniform(1, 20'000));
    const policy::Routing constants;
    const bool planned = rng.chance(0.5);
    const Belief less{static_cast<float>(rng.uniform(0, 200)), static_cast<float>(rng.uniform(0, 1e5)),
                      static_cast<float>(rng.uniform(0, 1e6))};
    Belief more = less;
    const auto grow = rng.below(3);
    (grow == 0   ? more.requests
     : grow == 1 ? more.prefill_tokens
                 : more.kv_tokens) += static_cast<float>(rng.uniform(1, 1e4));
    const double cached = rng.uniform() * static_cast<double>(ask.prompt_tokens);
    const double cost = cost_of(facts, constants, ask, less, cached, planned).total();
    BOOST_REQUIRE(cost_of(facts, constants, ask, more, cached, planned).total() >= cost);
    BOOST_REQUIRE(cost_of(facts, constants, ask, less, 0, planned).total() >= cost);
    BOOST_REQUIRE(std::isfinite(cost));
  }
}

BOOST_AUTO_TEST_CASE(equal_costs_are_shared_out_evenly) {
  Fleet fleet;
  fleet.engines(3).request_class("t", Criticality::standard);
  fleet.policy.routing.draws = 8;
  const Bench bench(fleet);
  std::vector<double> seen(3);
  Rng rng(3);
  Decision decision;
  for (int i = 0; i < 9'000; ++i) {
    decide(bench.around(), plain_ask(), {}, at(1), rng, decision);
    ++seen[decision.engine.at()];
  }
  BOOST_TEST(chi_square(seen, {1 / 3.0, 1 / 3.0, 1 / 3.0}) < chi_square_limit(2));
}

namespace {

/// Engines in virtual time, as their curves say: all requests of an engine advance one token a step, and a step takes
/// a + N*(b + c*U/O).
class VirtualFleet {
 public:
  VirtualFleet(Fleet& fleet, double output, double uncached)
      : fleet_(fleet), output_(output), uncached_(uncached) {
    running_.resize(fleet.table.engines.size());
  }
  struct Running {
    Ticket ticket;
    double tokens_left;
    bool answered;
  };
  double step(std::size_t e) const {
    const auto& row = fleet_.table.engines[e];
    return row.step_s + static_cast<double>(running_[e].size()) *
                            (row.per_sequence_s + row.per_prefill_token_s * uncached_ / output_);
  }
  /// When the next answer is complete, and where.
  std::pair<double, std::size_t> next_end() const {
    std::pair<double, std::size_t> best{1e300, 0};
    for (std::size_t e = 0; e < running_.size(); ++e)
      for (const Running& r : running_[e]) best = std::min(best, {now + r.tokens_left * step(e), e});
    return best;
  }
  void advance(double until) {
    for (std::size_t e = 0; e < running_.size(); ++e) {
      const double tokens = (until - now) / step(e);
      for (Running& r : running_[e]) r.tokens_left -= tokens;
    }
    now = until;
  }
  std::vector<Running>& on(std::size_t e) { return running_[e]; }

  double now = 0;

 private:
  Fleet& fleet_;
  double output_, uncached_;
  std::vector<std::vector<Running>> running_;
};

/// The plan for one class: at which price the engines together take this demand. Work per request in seconds.
struct OnePlan {
  std::vector<double> weights, price, load;
};
OnePlan plan_for(const Fleet& fleet, double demand_per_s, double output, double uncached) {
  const auto& rows = fleet.table.engines;
  OnePlan plan;
  const auto at_cost = [&](double cost) {
    plan = {};
    double total = 0;
    for (const auto& row : rows) {
      double rtt = 0;
      for (const auto& link : fleet.table.links)
        if (link.to == row.cluster) rtt = link.rtt_s;
      const double work = output * row.per_sequence_s + row.per_prefill_token_s * uncached;
      const double alone = output * row.step_s + row.per_prefill_token_s * uncached;
      const double q = alone / work;
      const double price = std::max(q, (cost - rtt) / work);
      const double load = std::min(0.85, 1 - std::sqrt(q / price));
      plan.price.push_back(price);
      plan.load.push_back(load);
      plan.weights.push_back(load / work);
      total += load / work;
    }
    return total;
  };
  double low = 0, high = 1e4;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (at_cost(middle) < demand_per_s ? low : high) = middle;
  }
  const double total = at_cost(high);
  for (double& w : plan.weights) w /= total;
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_CASE(with_load_on_plan_the_served_shares_stay_near_the_weights) {
  constexpr double output = 200, uncached = 300, demand_per_s = 26;
  Fleet fleet;
  fleet.request_class("t", Criticality::standard);
  const ClusterIndex far = fleet.cluster("far", 0.5);
  const double speed[] = {1, 1, 1.5, 1.5, 2, 3};
  for (int e = 0; e < 6; ++e) {
    fleet.engine("e" + std::to_string(e), e % 2 == 0 ? ClusterIndex(0) : far);
    auto& row = fleet.table.engines.back();
    row.step_s = 0.02 * speed[e];
    row.per_sequence_s = 0.0003 * speed[e];
    row.per_prefill_token_s = 2e-5 * speed[e];
    row.per_context_token_s = 0;
    row.kv_tokens = 1e6;
  }
  const OnePlan plan = plan_for(fleet, demand_per_s, output, uncached);
  fleet.weights(ClassIndex(0), plan.weights);
  for (std::size_t e = 0; e < 6; ++e) fleet.price(EngineIndex(e), plan.price[e], plan.load[e], 0.85);
  fleet.plan().admits.push_back({ClassIndex(0), 1, demand_per_s, uncached, output});

  Dispatcher d(options());
  VirtualFleet engines(fleet, output, uncached);
  Rng rng(11);
  std::vector<double> served(6);
  double next_arrival = 0, next_view = 0;
  std::shared_ptr<const View> view;
  constexpr int requests = 12'000, warm_up = 2'000;
  for (int arrived = 0; arrived < requests;) {
    const auto [end, where] = engines.next_end();
    const double now = std::min({end, next_arrival, next_view});
    engines.advance(now);
    if (now == next_view) {  // each half second a reading that is a quarter second old when it arrives
      for (std::size_t e = 0; e < 6; ++e)
        fleet.signal(EngineIndex(e), at(now), static_cast<double>(engines.on(e).size()), 0, 0.1);
      fleet.as_of = at(now);
      view = fleet.view(view.get());
      d.adopt(view, at(now + 0.25));
      next_view += 0.5;
    } else if (now == next_arrival) {
      RequestFacts facts = request("t", static_cast<std::uint64_t>(uncached) * 4);
      const Begun begun = d.begin(std::move(facts), at(now));
      const EngineIndex engine = as<Forward>(begun.verdict).engine;
      d.head(begun.ticket, 200, {}, at(now));
      d.first_byte(begun.ticket, at(now));
      engines.on(engine.at()).push_back({begun.ticket, rng.exponential(output) + 1, true});
      if (++arrived > warm_up) ++served[engine.at()];
      next_arrival += rng.exponential(1 / demand_per_s);
    } else {
      auto& on = engines.on(where);
      const auto done = std::min_element(
          on.begin(), on.end(), [](const auto& a, const auto& b) { return a.tokens_left < b.tokens_left; });
      d.finished(done->ticket, schema::AttemptEnd::succeeded,
                 {static_cast<std::uint64_t>(uncached), 0, static_cast<std::uint64_t>(output)}, at(now));
      on.erase(done);
    }
  }
  double variation = 0;
  for (std::size_t e = 0; e < 6; ++e) {
    const double share = served[e] / (requests - warm_up);
    BOOST_TEST_MESSAGE("engine " << e << ": weight " << plan.weights[e] << ", served " << share << ", load "
                                 << plan.load[e]);
    variation += 0.5 * std::abs(share - plan.weights[e]);
  }
  BOOST_TEST_MESSAGE("total variation " << variation);
  BOOST_TEST(variation <= 0.10);
}

}  // namespace signalbox::routing::test
