#include "optimizer/model/capped.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>

#include "tests/optimizer/solve/checks.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
using namespace signalbox::optimizer::test;
namespace tt = boost::test_tools;

namespace {

/// The dual value, every source priced as one that may be capped.
double capped_bound(const Problem& problem, const std::vector<double>& price) {
  double sum = 0.0;
  for (std::size_t e = 0; e < problem.engines.size(); ++e)
    if (problem.engines[e].curve.ceiling > 0.0) sum -= problem.engines[e].curve.conjugate(price[e]);
  CappedRows rows(problem);
  for (std::size_t s = 0; s < problem.sources.size(); ++s)
    if (problem.sources[s].demand_per_s > 0.0) sum += rows.value(s, price).cost;
  return sum;
}

/// What these flows cost where each source refuses what they leave of its demand; infinite where an engine is too full.
double cost_of(const Problem& problem, const std::vector<double>& flow) {
  std::vector<double> shed;
  for (const Source& source : problem.sources) {
    const auto first = flow.begin() + source.first_pair;
    shed.push_back(source.demand_per_s - std::accumulate(first, first + source.pair_count, 0.0));
  }
  const auto load = loads_of(problem, flow);
  for (std::size_t e = 0; e < load.size(); ++e)
    if (load[e] > problem.engines[e].curve.ceiling) return std::numeric_limits<double>::infinity();
  const auto terms = objective_terms(problem, flow, shed, load);
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}

/// Flows that keep the caps: some go where they like, as far as they are let.
std::vector<double> random_flows(const Problem& problem, Rng& rng) {
  std::vector<double> flow(problem.pairs.size(), 0.0);
  for (const Source& source : problem.sources) {
    double open = source.demand_per_s;
    for (int i = 0; i < 40 && source.pair_count > 0; ++i) {
      const std::size_t k = source.first_pair + rng.below(source.pair_count);
      const double more = std::min(open, source.demand_per_s * rng.uniform(0.01, 0.2)), before = flow[k];
      const Pair& pair = problem.pairs[k];
      flow[k] += more;
      const bool fits =
          loads_of(problem, flow)[pair.engine.at()] <= problem.engines[pair.engine.at()].curve.ceiling;
      if (fits && keeps_caps(problem, flow))
        open -= more;
      else
        flow[k] = before;
    }
  }
  return flow;
}

std::vector<double> random_price(const Problem& problem, Rng& rng) {
  std::vector<double> out;
  for (const EngineLoad& engine : problem.engines)
    out.push_back(engine.curve.ceiling > 0 ? engine.curve.marginal(rng.uniform(0.0, engine.curve.ceiling)) *
                                                 (rng.chance(0.2) ? rng.uniform(1.0, 3.0) : 1.0)
                                           : 0.0);
  return out;
}

/// The problem with these caps.
Problem with(Problem problem, std::vector<ShareCap> caps) {
  problem.caps = std::move(caps);
  BOOST_REQUIRE(check(problem).has_value());
  return problem;
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_caps_it_is_the_certificate) {
  Rng rng(3);
  for (int i = 0; i < 100; ++i) {
    const Problem problem = random_problem(rng);
    const Plan plan = solved(problem);
    BOOST_TEST(capped_bound(problem, plan.price) == plan.certificate.lower_bound, tt::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(no_flows_that_keep_the_caps_cost_less_whatever_the_prices) {
  Rng rng(7);
  std::size_t tried = 0, capped_higher = 0;
  for (int i = 0; i < 300; ++i) {
    const Problem free = random_problem(rng);
    Problem problem = with(free, random_caps(free, rng));
    if (rng.chance(0.3))
      for (Source& source : problem.sources)
        source.floor_fraction = 0.5, source.floor_shed_cost_s = 3 * source.shed_cost_s;
    if (rng.chance(0.3)) {
      problem.churn_cost_s = 0.2;
      for (std::size_t p = 0; p < problem.pairs.size(); ++p)
        problem.reference_per_s.push_back(rng.chance(0.3) ? rng.uniform(0.1, 3.0) : 0.0);
    }
    const auto price = rng.chance(0.5) ? solved(free).price : random_price(problem, rng);
    const double bound = capped_bound(problem, price), uncapped = capped_bound(with(problem, {}), price);
    BOOST_TEST(bound >= uncapped - 1e-9 * std::abs(bound));
    capped_higher += bound > uncapped * (1 + 1e-6);
    for (int j = 0; j < 10; ++j) {
      const double cost = cost_of(problem, random_flows(problem, rng));
      tried += std::isfinite(cost);
      BOOST_TEST(bound <= cost + 1e-9 * std::abs(cost), "instance " << i);
    }
  }
  BOOST_TEST(tried > 1000u);
  BOOST_TEST(capped_higher > 100u);
}

/// With at most half on each, the cheap engine's other half goes to the next.
BOOST_AUTO_TEST_CASE(at_the_marginal_costs_of_the_best_capped_plan_it_is_that_plan_s_cost) {
  const Problem problem =
      Sketch().engine(2, 1, 0.9).engine(2, 1, 0.9).engine(2, 1, 0.9).source(6, 100, {0.0, 0.5, 9.0}).take();
  const std::vector<double> flow{3, 3, 0};
  std::vector<double> price;
  const auto load = loads_of(problem, flow);
  for (std::size_t e = 0; e < 3; ++e) price.push_back(problem.engines[e].curve.marginal(load[e]));
  const ShareCap half{each_alone(3), 0.5};
  BOOST_TEST(capped_bound(with(problem, {half}), price) == cost_of(problem, flow), tt::tolerance(1e-12));
  // Both in one rack, of which half must stay away: so much goes far.
  BOOST_TEST(capped_bound(with(problem, {half, {{0, 0, 1}, 0.5}}), price) > cost_of(problem, flow) + 9);
}

BOOST_AUTO_TEST_CASE(caps_that_leave_too_little_room_do_not_bind) {
  const Problem problem = Sketch().engine(2, 1, 0.9).engine(2, 1, 0.9).source(6, 100, {0.0, 0.5}).take();
  const std::vector<double> price{3, 3};
  const Problem third = with(problem, {{each_alone(2), 1.0 / 3}});
  BOOST_TEST(!CapRoom(third).binds(0));
  BOOST_TEST(capped_bound(third, price) == capped_bound(problem, price));
}

BOOST_AUTO_TEST_CASE(groups_that_cross_are_left_out) {
  const ShareCap racks{{0, 0, 1, 1}, 0.5}, crossing{{0, 1, 1, 0}, 0.5}, all{{0, 0, 0, 0}, 1.0};
  const auto caps = nested({racks, crossing, all});
  BOOST_REQUIRE(caps.size() == 2u);
  BOOST_TEST(caps[0].group == racks.group);
  BOOST_TEST(caps[1].group == all.group);
  Problem problem = Sketch().engine(2, 1, 0.9).engine(2, 1, 0.9).engine(2, 1, 0.9).engine(2, 1, 0.9).take();
  problem.caps = {racks, crossing};
  BOOST_TEST(check(problem).error().text().find("caps[1]") != std::string::npos);
  problem.caps = {{{0, 0, 1}, 0.5}};
  BOOST_TEST(check(problem).error().text().find("3 groups for 4 engines") != std::string::npos);
}
