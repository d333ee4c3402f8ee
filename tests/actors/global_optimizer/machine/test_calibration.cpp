#include "actors/global_optimizer/machine/calibration.hpp"

#include "tests/actors/global_optimizer/machine/planned.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using namespace signalbox::global_optimizer::testing;
namespace tt = boost::test_tools;

namespace {

const ClusterName east("east");

/// A fleet in its stride: each period is planned, and the routers report what came.
struct World {
  World() {
    for (int i = 0; i < 60; ++i)
      demand.hear(report_of(east, policy->hash, 5, 400, 100), router, policy->hash, now += 500ms);
    planned = solve_for(gather(table, policy, {}, demand, {}, now));
  }
  /// Ten requests a second on engine 0, each taking `slower` times what the curve says at the load that they are.
  schema::OutcomeReport outcome(double slower) {
    schema::OutcomeReport out;
    out.cluster = east, out.policy = policy->hash, out.table = table->content;
    const optimizer::Plan& plan = planned.plan;
    for (std::size_t e = 0; e < 2; ++e) {  // the two in the east, as the plan shares them
      const optimizer::Source& source = planned.built.problem.sources[0];
      const double share = plan.flow_per_s[source.first_pair + e] / source.demand_per_s;
      due[e] += 10 * share;
      const auto n = static_cast<std::uint64_t>(due[e]);
      due[e] -= static_cast<double>(n);
      const auto latency = optimizer::expected_latency(planned.facts.fleet.engines[e].step,
                                                       planned.facts.fleet.traffic[0].shape,
                                                       plan.load[e] * 10 / source.demand_per_s, 1.0);
      const double first = slower * latency.ttft_s, all = first + slower * 99 * latency.tpot_s;
      out.served.push_back(
          {ClassIndex(0), EngineIndex(e), n, static_cast<double>(n) * all, static_cast<double>(n) * first});
    }
    return out;
  }
  /// One window of plans and outcomes.
  schema::Calibration run(double slower) {
    for (int i = 0; i < 100; ++i) {
      book.expect(planned.facts, planned.built.problem, planned.plan);
      book.hear(outcome(slower));
      if (auto closed = book.close(now += 1s)) return *closed;
    }
    BOOST_FAIL("no window was closed");
    return {};
  }
  kit::TablePtr table = shared_table();
  kit::PolicyPtr policy = shared_policy();
  DemandBook demand;
  CalibrationBook book;
  Instant now = instant_at(1s);
  double due[2] = {};  ///< requests not yet whole
  Planned planned;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_comes_as_expected_is_calibrated_and_leaves_the_headroom) {
  World world;
  const schema::Calibration c = world.run(1);
  BOOST_TEST(schema::check(c).has_value());
  BOOST_TEST(c.ratio == 1, tt::tolerance(0.05));
  BOOST_TEST(c.windows_off == 0u);
  BOOST_TEST(c.headroom == 1);
  BOOST_REQUIRE(c.rows.size() == 2u);
  BOOST_TEST(c.rows[0].latency_s == c.rows[0].expected_latency_s, tt::tolerance(0.05));
  BOOST_TEST(c.rows[0].first_byte_s == c.rows[0].expected_first_byte_s, tt::tolerance(0.05));
  BOOST_REQUIRE(c.loads.size() == 3u);
  BOOST_TEST(c.loads[0].load == c.loads[0].expected_load, tt::tolerance(0.1));
}

BOOST_AUTO_TEST_CASE(a_drift_of_a_fifth_for_three_windows_widens_the_headroom_until_it_is_gone) {
  World world;
  world.run(1);
  BOOST_TEST(world.run(1.5).windows_off == 1u);
  BOOST_TEST(world.run(1.5).headroom == 1);
  BOOST_TEST(!world.book.off());
  const schema::Calibration third = world.run(1.5);
  BOOST_TEST(world.book.off());
  BOOST_TEST(third.ratio == 1.5, tt::tolerance(0.05));
  BOOST_TEST(third.headroom == 0.95, tt::tolerance(1e-9));
  for (int i = 0; i < 10; ++i) world.run(1.5);
  BOOST_TEST(world.book.headroom() == CalibrationBook::least_headroom, tt::tolerance(1e-9));
  for (int i = 0; i < 4; ++i) world.run(1);
  BOOST_TEST(world.book.headroom() == 1, tt::tolerance(1e-9));
  BOOST_TEST(!world.book.off());
}

BOOST_AUTO_TEST_CASE(the_headroom_yields_before_anybody_is_refused_for_it) {
  World world;
  for (int i = 0; i < 12; ++i) world.run(1.5);
  BOOST_TEST(world.book.headroom() == CalibrationBook::least_headroom, tt::tolerance(1e-9));
  world.book.refuses(true);
  BOOST_TEST(world.book.headroom() == 0.85, tt::tolerance(1e-9));
  for (int i = 0; i < 9; ++i) world.book.refuses(true);
  BOOST_TEST(world.book.headroom() == 1, tt::tolerance(1e-9));
  BOOST_TEST(world.run(1.5).headroom == 1, tt::tolerance(1e-9));  // as standbys are told
  world.book.refuses(false);
  BOOST_TEST(world.book.headroom() == 0.996, tt::tolerance(1e-9));
  for (int i = 0; i < 60; ++i) world.book.refuses(false);
  BOOST_TEST(world.book.headroom() == CalibrationBook::least_headroom, tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_smaller_drift_and_few_or_foreign_reports_change_nothing) {
  World world;
  for (int i = 0; i < 5; ++i) world.run(1.1);
  BOOST_TEST(!world.book.off());
  schema::OutcomeReport foreign = world.outcome(9);
  foreign.policy = digest_of("another");
  for (int i = 0; i < 100; ++i) world.book.hear(foreign);
  BOOST_TEST(world.run(1).ratio < 1.2);
  CalibrationBook idle;
  for (int w = 0; w < 5; ++w) {
    idle.expect(world.planned.facts, world.planned.built.problem, world.planned.plan);
    idle.hear(world.outcome(5));  // ten requests in a window
    idle.close(world.now += 11s);
  }
  BOOST_TEST(!idle.off());
}
