#include "actors/global_optimizer/machine/demand.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
namespace tt = boost::test_tools;

namespace {

const ClusterName east("east");
const Digest policy = digest_of("p");
const Incarnation router{1, 1};

schema::DemandReport report(std::uint64_t offered) {
  schema::DemandReport out{east, policy, 500ms, {}, {}};
  out.rows.push_back({.request_class = ClassIndex(0),
                      .offered = offered,
                      .prompt_tokens = offered * 100,
                      .cached_tokens = offered * 40,
                      .output_tokens = offered * 20,
                      .finished = offered});
  return out;
}

/// Reports every half second, of Poisson arrivals at a rate.
struct Poisson {
  explicit Poisson(std::uint64_t seed) : rng(seed) {}
  std::uint64_t count(double mean) {
    std::uint64_t n = 0;
    for (double left = mean; (left -= rng.exponential(1)) > 0;) ++n;
    return n;
  }
  void hear(double rate_per_s, int reports) {
    for (int i = 0; i < reports; ++i) book.hear(report(count(rate_per_s / 2)), router, policy, t += 500ms);
  }
  double rate() const { return book.of(east, ClassIndex(0), t).rate_per_s; }
  Rng rng;
  DemandBook book;
  Instant t = instant_at(0s);
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_first_report_counts_in_full_and_sizes_are_ratios_of_sums) {
  DemandBook book;
  Instant t = instant_at(0s);
  book.hear(report(10), router, policy, t);
  BOOST_TEST(book.of(east, ClassIndex(0), t).rate_per_s == 20, tt::tolerance(1e-9));
  for (int i = 0; i < 20; ++i) book.hear(report(20), router, policy, t += 500ms);
  const Expected e = book.of(east, ClassIndex(0), t);
  BOOST_TEST(e.rate_per_s > 38);
  BOOST_TEST(e.rate_per_s <= 40);
  BOOST_TEST(e.planned_per_s > e.rate_per_s);
  BOOST_TEST(e.shape.uncached_prompt_tokens == 60, tt::tolerance(1e-9));
  BOOST_TEST(e.shape.output_tokens == 20, tt::tolerance(1e-9));
  BOOST_TEST(e.shape.context_tokens == 110, tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(noise_is_averaged_out) {
  double squares = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Poisson world(seed);
    world.hear(10, 300);
    squares += std::pow(world.rate() / 10 - 1, 2);
  }
  BOOST_TEST(std::sqrt(squares / 50) <
             0.1);  // a count over 30 s has 4 %, one over 4 s, as an upper quantile's, 16 %
}

BOOST_AUTO_TEST_CASE(a_step_is_followed_within_seconds) {
  struct Row {
    const char* name;
    double before, after;
    int reports;
  };
  for (const Row& row : {Row{"doubled", 30, 60, 6}, Row{"halved", 60, 30, 6}, Row{"from nothing", 0, 20, 5},
                         Row{"to nothing", 20, 0, 6}, Row{"by half, at many", 200, 300, 5}}) {
    int late = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      Poisson world(seed);
      world.hear(row.before, 100);
      world.hear(row.after, row.reports);
      late += std::abs(world.rate() - row.after) > 0.3 * std::abs(row.after - row.before);
    }
    BOOST_TEST(late <= 5, row.name << ": " << late << " of 50 are late");
  }
}

BOOST_AUTO_TEST_CASE(a_cluster_s_routers_are_counted_together_and_a_silent_cluster_is_forgotten) {
  DemandBook book;
  Instant t = instant_at(0s);
  for (int i = 0; i < 40; ++i) {
    book.hear(report(10), router, policy, t += 200ms);
    book.hear(report(5), Incarnation{1, 2}, policy, t += 300ms);
  }
  BOOST_TEST(book.of(east, ClassIndex(0), t).rate_per_s == 30, tt::tolerance(0.03));
  BOOST_TEST(book.of(east, ClassIndex(0), t + 9s).rate_per_s > 0);
  BOOST_TEST(book.of(east, ClassIndex(0), t + 61s).rate_per_s == 0);
}

BOOST_AUTO_TEST_CASE(lost_reports_are_not_missing_requests) {
  DemandBook book;
  Instant t = instant_at(0s);
  for (int i = 0; i < 40; ++i) book.hear(report(10), router, policy, t += 500ms);
  book.hear(report(10), router, policy, t += 5s);
  BOOST_TEST(book.of(east, ClassIndex(0), t).rate_per_s == 20, tt::tolerance(0.04));
}

BOOST_AUTO_TEST_CASE(what_was_not_measured_is_guessed_and_says_so) {
  DemandBook book;
  const Expected e = book.of(east, ClassIndex(3), instant_at(0s));
  BOOST_TEST(!e.measured);
  BOOST_TEST(e.planned_per_s == 0);
  BOOST_TEST(e.shape.output_tokens > 0);
  auto foreign = report(10);
  foreign.policy = digest_of("another");
  book.hear(foreign, router, policy, instant_at(0s));
  BOOST_TEST(!book.of(east, ClassIndex(0), instant_at(0s)).measured);
}

namespace {

schema::DemandReport report_in(const ClusterName& cluster, std::uint64_t offered) {
  schema::DemandReport out = report(offered);
  out.cluster = cluster;
  return out;
}

}  // namespace

/// 60 clusters of 2 requests per second each: none sees by itself within two seconds that its rate has doubled.
BOOST_AUTO_TEST_CASE(what_steps_in_the_whole_fleet_steps_in_each_cluster) {
  DemandBook book;
  Rng rng(3);
  Instant t = instant_at(0s);
  std::vector<ClusterName> clusters;
  for (int i = 0; i < 60; ++i) clusters.emplace_back("c" + std::to_string(i));
  const auto count = [&](double mean) {
    std::uint64_t n = 0;
    for (double left = mean; (left -= rng.exponential(1)) > 0;) ++n;
    return n;
  };
  const auto hear = [&](double rate_per_s, int reports) {
    bool stepped = false;
    for (int i = 0; i < reports; ++i) {
      t += 500ms;
      for (const ClusterName& cluster : clusters)
        stepped |= book.hear(report_in(cluster, count(rate_per_s / 2)), router, policy, t);
    }
    return stepped;
  };
  const auto mean = [&] {
    double sum = 0;
    for (const ClusterName& cluster : clusters) sum += book.of(cluster, ClassIndex(0), t).rate_per_s;
    return sum / static_cast<double>(clusters.size());
  };
  hear(2, 100);
  BOOST_TEST(mean() == 2, tt::tolerance(0.1));
  BOOST_TEST(hear(4, 4));
  BOOST_TEST(mean() > 3);
  hear(4, 20);
  BOOST_TEST(mean() == 4, tt::tolerance(0.1));
}

BOOST_AUTO_TEST_CASE(one_cluster_s_step_is_not_the_others) {
  DemandBook book;
  Instant t = instant_at(0s);
  const ClusterName west("west");
  const auto hear = [&](std::uint64_t in_east, std::uint64_t in_west, int reports) {
    for (int i = 0; i < reports; ++i) {
      t += 500ms;
      book.hear(report_in(east, in_east), router, policy, t);
      book.hear(report_in(west, in_west), router, policy, t);
    }
  };
  hear(20, 10, 100);
  hear(60, 10, 8);
  BOOST_TEST(book.of(east, ClassIndex(0), t).rate_per_s > 100);
  BOOST_TEST(book.of(west, ClassIndex(0), t).rate_per_s == 20, tt::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(reports_that_come_all_at_once_are_of_the_time_that_they_tell) {
  Poisson seen(5);
  seen.hear(20, 20);
  const double before = seen.rate();
  seen.t += 8s;
  for (int i = 0; i < 16; ++i) seen.book.hear(report(seen.count(10)), router, policy, seen.t);
  for (int i = 0; i < 4; ++i) {
    seen.hear(20, 1);
    const Expected e = seen.book.of(east, ClassIndex(0), seen.t);
    BOOST_TEST(e.planned_per_s < 1.6 * before);
    BOOST_TEST(e.rate_per_s > 0.7 * before);
  }
}
