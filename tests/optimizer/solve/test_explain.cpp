// What a plan says of the engines that it does not use, checked by solving again.
#include "optimizer/synthetic/synthetic.hpp"
#include "tests/optimizer/solve/checks.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
using namespace signalbox::optimizer::test;

namespace {

constexpr double tight = 1e-7;
/// A claim is tried this much, relatively, on either side of what it says.
constexpr double margin = 0.1;
/// Below this share of its demand a source counts as not using a pair: a certified plan may place that much anywhere.
constexpr double trace = 2e-3;
/// Claims of less are within what the certificate leaves open.
constexpr double least_claim_s = 5e-3, least_claim_load = 0.02;

struct Unused {
  SourceIndex source;
  PairIndex pair;
  double nearer_s;
  std::optional<double> less_loaded;
};

std::vector<Unused> unused_pairs(const Problem& problem, const Plan& plan) {
  std::vector<Unused> out;
  for (std::size_t s = 0; s < problem.sources.size(); ++s) {
    const Source& source = problem.sources[s];
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
      if (source.demand_per_s > 0 && plan.flow_per_s[i] < 1e-6 * source.demand_per_s)
        out.push_back({SourceIndex(s), PairIndex(i),
                       reduced_cost_s(problem, plan, SourceIndex(s), PairIndex(i)),
                       less_loaded(problem, plan, SourceIndex(s), PairIndex(i))});
  }
  return out;
}

bool uses(const Plan& plan, const Source& source, std::size_t pair) {
  return plan.flow_per_s[pair] > trace * source.demand_per_s;
}

/// The source alone, all others' load on the engines being what it is, `share` of it gone from one engine. Their costs with a
/// load y0 there already are G(y0 + z) - G(y0), whose slope is that of a curve with q / (1 - y0/c)^2 and c - y0.
Problem alone(const Problem& problem, const Plan& plan, SourceIndex s, EngineIndex e, double share) {
  const Source& source = problem.sources[s.at()];
  std::vector<double> others = plan.load;
  for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
    others[problem.pairs[i].engine.at()] -= plan.flow_per_s[i] * problem.pairs[i].work_s;
  others[e.at()] *= 1 - share;
  Problem out;
  for (std::size_t i = 0; i < problem.engines.size(); ++i) {
    CongestionCurve curve = problem.engines[i].curve;
    const double there = std::max(0.0, others[i]), idle = 1 - there / curve.capacity;
    out.engines.push_back(
        {{curve.q / (idle * idle), curve.capacity - there, std::max(0.0, curve.ceiling - there)}});
  }
  out.sources = {source};
  out.sources[0].first_pair = 0;
  const auto pairs = problem.pairs_of(source);
  out.pairs.assign(pairs.begin(), pairs.end());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_claim_of_what_would_make_an_engine_used_is_true) {
  std::size_t nearer = 0, lighter = 0, never = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem problem = build_problem(synthetic_fleet({3, 12, 2, 0.6, false, seed}))->problem;
    const Plan plan = solved(problem, tight);
    for (const Unused& unused : unused_pairs(problem, plan)) {
      if (unused.nearer_s < least_claim_s) continue;
      const Source& source = problem.sources[unused.source.at()];
      const EngineIndex engine = problem.pairs[unused.pair.at()].engine;
      for (const bool enough : {false, true}) {
        Problem moved = problem;
        moved.pairs[unused.pair.at()].cost_s -= unused.nearer_s * (enough ? 1 + margin : 1 - margin);
        BOOST_TEST(
            uses(solved(moved, tight), source, unused.pair.at()) == enough,
            "seed " << seed << " pair " << unused.pair.value << ": " << unused.nearer_s << " s nearer");
        ++nearer;
      }
      const std::size_t own = unused.pair.at() - source.first_pair;
      if (!unused.less_loaded) {
        BOOST_TEST(!uses(solved(alone(problem, plan, unused.source, engine, 1.0), tight), source, own));
        ++never;
      } else if (*unused.less_loaded > least_claim_load) {
        for (const bool enough : {false, true}) {
          const double share = *unused.less_loaded * (1 - margin) + (enough ? margin : 0);
          if (share > 1) continue;
          BOOST_TEST(
              uses(solved(alone(problem, plan, unused.source, engine, share), tight), source, own) == enough,
              "seed " << seed << " pair " << unused.pair.value << ": " << *unused.less_loaded
                      << " less loaded");
          ++lighter;
        }
      }
    }
  }
  BOOST_TEST_MESSAGE(nearer << " claims of distance, " << lighter << " of load, " << never << " of never");
  BOOST_TEST(nearer > 100u);
  BOOST_TEST(lighter > 40u);
}

BOOST_AUTO_TEST_CASE(a_used_engine_needs_nothing_and_what_limits_a_ceiling_is_named) {
  FleetState fleet = synthetic_fleet({2, 6, 1, 0.6, false, 1});
  fleet.engines[0].max_batch = 1;
  fleet.engines[1].kv_tokens = 1e3;
  fleet.engines[2].availability = 0;
  for (std::size_t e = 3; e < fleet.engines.size(); ++e)
    fleet.engines[e].max_batch = fleet.engines[e].kv_tokens = 0;
  const auto built = build_problem(fleet);
  BOOST_REQUIRE(built.has_value());
  BOOST_TEST((built->ceilings[0] == CeilingReason::batch));
  BOOST_TEST((built->ceilings[1] == CeilingReason::kv_memory));
  BOOST_TEST((built->ceilings[2] == CeilingReason::out_of_service));
  BOOST_TEST((built->ceilings[3] == CeilingReason::load));
  const Plan plan = solved(built->problem, tight);
  for (std::size_t s = 0; s < built->problem.sources.size(); ++s) {
    const Source& source = built->problem.sources[s];
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
      if (plan.flow_per_s[i] > 0.1 * source.demand_per_s)
        BOOST_TEST(reduced_cost_s(built->problem, plan, SourceIndex(s), PairIndex(i)) < 1e-3);
  }
}
