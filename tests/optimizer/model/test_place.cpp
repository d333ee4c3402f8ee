// Where hot prefix groups are held: against every possible placement, and what makes one more engine hold a group.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "messages/base/rng.hpp"
#include "optimizer/model/place.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;

namespace {

constexpr double equal = 1e-6;

PlacementEngine engine(double base_load, double memory_tokens = 1e9, double hold_cost_s_per_token = 0) {
  return {{20.0, 1.0, 0.9}, base_load, memory_tokens, hold_cost_s_per_token};
}
/// A request that computes its prefix takes 0.3 s of the engine, else 0.1 s.
PlacementOption option(std::size_t engine, double away_s = 0) {
  return {EngineIndex(engine), away_s, away_s + 0.2, 0.1, 0.3};
}

PlacementProblem drawn(Rng& rng) {
  PlacementProblem out;
  const std::size_t engines = 2 + rng.below(3), groups = 1 + rng.below(engines == 4 ? 2 : 3);
  for (std::size_t e = 0; e < engines; ++e) {
    const double capacity = 0.5 + rng.uniform();
    out.engines.push_back({{5 + 20 * rng.uniform(), capacity, 0.9 * capacity},
                           0.7 * rng.uniform() * capacity,
                           2000 + 6000 * rng.uniform(),
                           rng.below(2) == 0 ? 0 : 2e-4 * rng.uniform()});
  }
  for (std::size_t g = 0; g < groups; ++g) {
    const double tokens = 1000 + 4000 * rng.uniform();
    out.group_tokens.push_back(tokens);
    for (std::size_t cluster = 0; cluster < 1 + rng.below(2); ++cluster) {
      PlacementRow row{static_cast<std::uint32_t>(g), 0.1 + rng.uniform(), {}};
      for (std::size_t e = 0; e < engines; ++e) {
        const double away = rng.uniform(), rest = 0.02 + 0.05 * rng.uniform(), token = 4e-5 * rng.uniform();
        row.options.push_back({EngineIndex(e), away, away + tokens * token, rest, rest + tokens * token});
      }
      out.rows.push_back(row);
    }
  }
  return out;
}

bool fits(const PlacementProblem& problem, const std::vector<std::vector<EngineIndex>>& holders) {
  std::vector<double> held(problem.engines.size());
  for (std::size_t g = 0; g < holders.size(); ++g)
    for (const EngineIndex e : holders[g]) held[e.at()] += problem.group_tokens[g];
  for (std::size_t e = 0; e < held.size(); ++e)
    if (held[e] > problem.engines[e].memory_tokens) return false;
  return true;
}

/// The least objective of all placements.
double exhaustive(const PlacementProblem& problem) {
  const std::size_t engines = problem.engines.size(), bits = engines * problem.group_tokens.size();
  double best = HUGE_VAL;
  for (std::uint32_t set = 0; set < 1u << bits; ++set) {
    std::vector<std::vector<EngineIndex>> holders(problem.group_tokens.size());
    for (std::size_t bit = 0; bit < bits; ++bit)
      if (set >> bit & 1) holders[bit / engines].emplace_back(bit % engines);
    if (fits(problem, holders)) best = std::min(best, flows_for(problem, std::move(holders)).objective);
  }
  return best;
}

}  // namespace

BOOST_AUTO_TEST_CASE(small_placements_equal_the_exhaustive_optimum) {
  Rng rng(7);
  for (int i = 0; i < 60; ++i) {
    const PlacementProblem problem = drawn(rng);
    const Placement found = place(problem);
    const double best = exhaustive(problem);
    BOOST_TEST(std::abs(found.objective - best) <= equal * std::abs(best),
               "instance " << i << ": " << found.objective << ", the best is " << best);
    BOOST_TEST(fits(problem, found.holders));
    for (std::size_t r = 0; r < problem.rows.size(); ++r) {
      double sum = 0;
      for (const double flow : found.flow_per_s[r]) sum += flow;
      BOOST_TEST(std::abs(sum - problem.rows[r].rate_per_s) <= 1e-9);
    }
  }
}

/// Two alike engines share a request evenly; a near one takes what its lead is worth: G'(y1) = G'(y2) + lead / work.
BOOST_AUTO_TEST_CASE(flows_are_where_marginal_costs_are_equal) {
  PlacementProblem problem{{engine(0.2), engine(0.2)}, {3000}, {{0, 4.0, {option(0), option(1, 1.5)}}}};
  const Placement flows = flows_for(problem, {{EngineIndex(0), EngineIndex(1)}});
  const auto marginal = [&](std::size_t e) {
    return problem.engines[e].curve.marginal(0.2 + 0.1 * flows.flow_per_s[0][e]);
  };
  BOOST_TEST(flows.flow_per_s[0][0] > flows.flow_per_s[0][1]);
  BOOST_TEST(0.1 * marginal(0) == 1.5 + 0.1 * marginal(1), boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(memory_binds) {
  const std::vector<PlacementRow> rows{{0, 1.0, {option(0)}}, {1, 3.0, {option(0)}}};
  const PlacementProblem enough{{engine(0.1, 6000)}, {3000, 3000}, rows};
  BOOST_TEST(place(enough).holders[0].size() == 1u);
  BOOST_TEST(place(enough).holders[1].size() == 1u);
  const PlacementProblem scarce{{engine(0.1, 5999)}, {3000, 3000}, rows};
  const Placement placed = place(scarce);
  BOOST_TEST(placed.holders[0].empty());
  BOOST_TEST(placed.holders[1].size() == 1u);  // the one that is asked for more
}

BOOST_AUTO_TEST_CASE(memory_that_is_worth_more_elsewhere_holds_nothing) {
  const std::vector<PlacementRow> rows{{0, 1.0, {option(0)}}};
  BOOST_TEST(place({{engine(0.1, 1e9, 1e-4)}, {3000}, rows}).holders[0].size() == 1u);
  BOOST_TEST(place({{engine(0.1, 1e9, 1.0)}, {3000}, rows}).holders[0].empty());
}

BOOST_AUTO_TEST_CASE(a_group_is_replicated_from_the_rate_that_was_told) {
  const auto of_rate = [](double rate) {
    return PlacementProblem{
        {engine(0.1, 1e9, 2e-4), engine(0.1, 1e9, 2e-4)}, {3000}, {{0, rate, {option(0), option(1, 0.3)}}}};
  };
  const PlacementProblem low = of_rate(0.5);
  const Placement one = place(low);
  BOOST_REQUIRE(one.holders[0].size() == 1u);
  const double more_at = more_at_per_s(low, one, 0);
  BOOST_REQUIRE(more_at > 0.5);
  BOOST_TEST(place(of_rate(0.98 * more_at), one.holders).holders[0].size() == 1u);
  BOOST_TEST(place(of_rate(1.02 * more_at), one.holders).holders[0].size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_is_in_force_stays_for_small_gains) {
  const PlacementProblem problem{
      {engine(0.10, 3000), engine(0.11, 3000)}, {3000}, {{0, 0.5, {option(0), option(1)}}}};
  const std::vector<std::vector<EngineIndex>> there{{EngineIndex(1)}};
  const Placement best = place(problem);
  BOOST_TEST(best.holders[0].size() == 2u);
  BOOST_TEST((place(problem, there, 0.9).holders == there));
}

BOOST_AUTO_TEST_CASE(nothing_is_put_on_an_engine_that_is_gone) {
  PlacementProblem problem{{engine(0), engine(0.5)}, {3000}, {{0, 1.0, {option(0), option(1)}}}};
  problem.engines[0].curve.ceiling = 0;
  const Placement placed = place(problem, {{EngineIndex(0)}});
  BOOST_TEST((placed.holders == std::vector<std::vector<EngineIndex>>{{EngineIndex(1)}}));
  BOOST_TEST(placed.flow_per_s[0][0] == 0);
}
