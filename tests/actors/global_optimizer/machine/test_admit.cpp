// Who is refused by plan: those that the fleet has no room for, and nobody because chance made the demand look larger.
#include "actors/global_optimizer/machine/snapshots.hpp"
#include "messages/base/rng.hpp"
#include "tests/actors/global_optimizer/machine/planned.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using namespace signalbox::global_optimizer::testing;

namespace {

constexpr std::uint64_t prompt_tokens = 40, output_tokens = 200;

/// The small fleet, asked in the east from the second second on.
struct Asked {
  explicit Asked(std::uint64_t seed) : rng(seed) { report(0, 4); }

  void report(double rate_per_s, int halves) {
    for (int i = 0; i < halves; ++i) {
      std::uint64_t n = 0;
      for (double left = rate_per_s / 2; (left -= rng.exponential(1)) > 0;) ++n;
      demand.hear(report_of(east, policy->hash, n, prompt_tokens, output_tokens), router, policy->hash,
                  now += 500ms);
    }
  }
  Planned plan(PlannedFor what) const { return solve_for(gather(table, policy, {}, demand, {}, now, what)); }
  bool refuses_for(PlannedFor what) const {
    const Planned p = plan(what);
    return refuses(p.built.problem, p.plan);
  }
  /// As the next snapshot says it of the class that is asked for.
  schema::AdmitRow admit() const {
    PlannedFor what = PlannedFor::most;
    if (refuses_for(what)) what = PlannedFor::expected;
    if (refuses_for(what)) what = PlannedFor::sure;
    const Planned p = plan(what);
    return snapshots_of(p.facts, p.built, p.plan, 1s).front().admits.front();
  }

  const kit::TablePtr table = shared_table();
  const kit::PolicyPtr policy = shared_policy();
  const ClusterName east{"east"};
  Rng rng;
  DemandBook demand;
  Instant now = instant_at(0s);
};

/// Requests per second that the fleet has room for.
double room_per_s() {
  Asked asked(1);
  asked.report(400, 80);
  const auto row = asked.admit();
  BOOST_REQUIRE(row.admit < 0.9);
  return row.admit * row.planned_rps;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_fits_is_hardly_ever_refused_however_short_the_demand_is_known) {
  const double room = room_per_s(), rate = 0.85 * room;
  double refused = 0, offered = 0, looked_overloaded = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Asked asked(seed);
    for (int second = 0; second < 8; ++second) {
      asked.report(rate, 2);
      refused += (1 - asked.admit().admit) * rate, offered += rate;
      looked_overloaded += asked.refuses_for(PlannedFor::most);
    }
  }
  BOOST_TEST_MESSAGE("room for " << room << "/s; refused " << 100 * refused / offered << " %; "
                                 << looked_overloaded << " of 320 plans were for more than fits");
  BOOST_TEST(looked_overloaded > 40);
  BOOST_TEST(refused / offered < 0.005);
}

// Chance hides at most a standard deviation of what was counted: less, the longer it goes on.
BOOST_AUTO_TEST_CASE(what_is_too_much_is_refused_within_seconds) {
  const double room = room_per_s(), rate = 1.5 * room;
  double after_5_s = 0, after_30_s = 0;
  constexpr int seeds = 20;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Asked asked(seed);
    asked.report(rate, 10);
    after_5_s += asked.admit().admit * rate / room / seeds;
    asked.report(rate, 50);
    after_30_s += asked.admit().admit * rate / room / seeds;
  }
  BOOST_TEST_MESSAGE("admitted, of what there is room for: " << after_5_s << " after 5 s, " << after_30_s
                                                             << " after 30 s");
  BOOST_TEST(after_5_s < 1.3);
  BOOST_TEST(after_30_s < 1.12);
  BOOST_TEST(after_30_s > 0.95);
}
