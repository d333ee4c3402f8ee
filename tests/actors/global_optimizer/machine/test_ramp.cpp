// Demand that rises: what a plan for the forecast does, and what one for the last value does.
#include <algorithm>

#include "messages/base/rng.hpp"
#include "tests/actors/global_optimizer/machine/planned.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using namespace signalbox::global_optimizer::testing;

namespace {

/// The greatest load of any engine over its headroom, if the weights of this plan meet that rate.
double fullest(const Planned& p, double rate_per_s) {
  std::vector<double> load(p.built.problem.engines.size(), 0.0);
  const optimizer::Source& source = p.built.problem.sources[0];
  for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
    load[p.built.problem.pairs[i].engine.at()] +=
        rate_per_s * p.plan.flow_per_s[i] / source.demand_per_s * p.built.problem.pairs[i].work_s;
  double worst = 0;
  for (std::size_t e = 0; e < load.size(); ++e)
    if (p.built.problem.engines[e].curve.ceiling > 0)
      worst = std::max(worst, load[e] / p.built.problem.engines[e].curve.ceiling);
  return worst;
}

}  // namespace

/// Loads beyond the ceiling by more than this eat up most of what is left of the engine.
constexpr double passed_from = 1.1;

// From 60 to 120 requests a second within a minute. Engines a and b are near and fill up to their headroom before the far c takes a
// share; each second's plan is met by the demand of the second after it.
BOOST_AUTO_TEST_CASE(
    on_a_ramp_no_engine_passes_its_ceiling_by_a_tenth_where_the_plan_for_the_last_value_does) {
  schema::FleetTable far = tests::small_table();
  far.links = {{ClusterIndex(0), ClusterIndex(1), 30.0}, {ClusterIndex(1), ClusterIndex(0), 30.0}};
  far.content = kit::content_of(far);
  const kit::TablePtr table = shared_table(far);
  const kit::PolicyPtr policy = shared_policy();
  const ClusterName east("east");
  int passed = 0, passed_by_last = 0, periods = 0;
  double worst = 0, worst_by_last = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Rng rng(seed);
    DemandBook demand;
    Instant now = instant_at(1s);
    double last = 0;
    const auto reported = [&](double rate) {
      last = 0;
      for (int half = 0; half < 2; ++half) {
        std::uint64_t n = 0;
        for (double left = rate / 2; (left -= rng.exponential(1)) > 0;) ++n;
        last += static_cast<double>(n);
        demand.hear(report_of(east, policy->hash, n, 40, 10), router, policy->hash, now += 500ms);
      }
    };
    for (int second = 0; second < 60; ++second) reported(60);
    for (int second = 0; second < 60; ++second) {
      const double rate = 60 + 1.0 * second;
      reported(rate);
      Facts facts = gather(table, policy, {}, demand, {}, now);
      Facts by_last = facts;
      by_last.fleet.traffic[0].demand_per_s = std::max(last, 0.1);
      const double next = rate + 1.0;
      const double with_forecast = fullest(solve_for(std::move(facts)), next);
      const double with_last = fullest(solve_for(std::move(by_last)), next);
      worst = std::max(worst, with_forecast), worst_by_last = std::max(worst_by_last, with_last);
      passed += with_forecast > passed_from, passed_by_last += with_last > passed_from;
      ++periods;
    }
  }
  BOOST_TEST_MESSAGE("over the ceiling by a tenth in " << passed << " of " << periods << " periods, worst "
                                                       << worst << "; by the last value in " << passed_by_last
                                                       << ", worst " << worst_by_last);
  BOOST_TEST(passed == 0);
  BOOST_TEST(passed_by_last > 0);
}
