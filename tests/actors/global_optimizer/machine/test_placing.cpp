// Hot prefix groups from the routers' reports to the rows of a snapshot.
#include "actors/global_optimizer/machine/placing.hpp"

#include "actors/global_optimizer/machine/judge.hpp"
#include "actors/global_optimizer/machine/snapshots.hpp"
#include "tests/actors/global_optimizer/machine/planned.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using namespace signalbox::global_optimizer::testing;

namespace {

constexpr std::uint64_t group = 77;
constexpr double prefix_tokens = 3000;

struct Told {
  kit::TablePtr table = shared_table();
  kit::PolicyPtr policy;
  DemandBook book;
  Placer placer;
  Instant now = instant_at(0s);

  explicit Told(const std::string& lines = {}) {
    auto compiled = policy::compile_text(tests::small_policy_text() + lines, "test.policy");
    BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().text()));
    policy = shared_policy(*std::move(compiled));
  }

  /// Of half a second, in the first cluster: `of_group` of the requests begin alike.
  void hear(std::uint64_t offered, std::uint64_t of_group, int reports) {
    for (int i = 0; i < reports; ++i) {
      schema::DemandReport report = report_of(table->clusters[0].name, policy->hash, offered, 4000, 100);
      if (of_group > 0) report.groups.push_back({ClassIndex(0), group, prefix_tokens, of_group});
      book.hear(report, router, policy->hash, now += 500ms);
    }
  }
  std::vector<schema::RoutingSnapshot> plan() {
    Planned planned = solve_for(gather(table, policy, {}, book, {}, now));
    auto snapshots = snapshots_of(planned.facts, planned.built, planned.plan, 1s);
    placer.add_groups(planned.facts, planned.built, planned.plan, book, now, snapshots);
    BOOST_TEST(judge(snapshots, planned.facts, 1.0).has_value());
    return snapshots;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_fleet_without_hot_groups_has_no_rows) {
  Told told;
  told.hear(1, 0, 60);
  for (const auto& snapshot : told.plan()) BOOST_TEST(snapshot.groups.empty());
}

BOOST_AUTO_TEST_CASE(a_hot_group_is_held_where_it_is_asked_for_until_it_is_asked_for_no_more) {
  Told told;
  told.hear(1, 1, 60);
  const auto snapshots = told.plan();
  const auto& rows = snapshots[0].groups;
  BOOST_REQUIRE(!rows.empty());
  double share = 0;
  for (const auto& row : rows) {
    BOOST_TEST(row.group == group);
    BOOST_TEST(row.prefix_tokens == prefix_tokens);
    BOOST_TEST(row.rate_per_s == 2, boost::test_tools::tolerance(0.05));
    share += row.share;
  }
  BOOST_TEST(share == 1, boost::test_tools::tolerance(1e-9));
  for (std::size_t other = 1; other < snapshots.size(); ++other) BOOST_TEST(snapshots[other].groups.empty());
  const auto again = told.plan()[0].groups;  // nothing has changed
  BOOST_REQUIRE(again.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    BOOST_TEST((again[i].engine == rows[i].engine));
    BOOST_TEST(again[i].share == rows[i].share, boost::test_tools::tolerance(1e-6));
  }
  told.hear(1, 0, 240);
  BOOST_TEST(told.plan()[0].groups.empty());
}

// An engine has 100,000 tokens of memory.
BOOST_AUTO_TEST_CASE(the_policy_bounds_the_memory_that_groups_hold_and_the_plan_says_where) {
  Told roomy("cache groups 3.1% of memory\n");
  roomy.hear(1, 1, 60);
  const auto fits = roomy.plan()[0];
  BOOST_TEST(!fits.groups.empty());
  BOOST_TEST(fits.limits.empty());
  Told tight("cache groups 2.9% of memory\n");
  tight.hear(1, 1, 60);
  const auto none = tight.plan()[0];
  BOOST_TEST(none.groups.empty());
  BOOST_REQUIRE(!none.limits.empty());
  for (const auto& row : none.limits) BOOST_TEST((row.limit == schema::PolicyLimit::cache_memory));
  BOOST_TEST((none.limits[0].engine == fits.groups[0].engine));
}
