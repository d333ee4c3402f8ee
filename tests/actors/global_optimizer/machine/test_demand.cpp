#include "actors/global_optimizer/machine/demand.hpp"

#include <boost/test/unit_test.hpp>

using namespace signalbox;
using namespace signalbox::global_optimizer;
namespace tt = boost::test_tools;

namespace {

const ClusterName east("east");
const Digest policy = digest_of("p");

schema::DemandReport report(std::uint64_t offered) {
  schema::DemandReport out{east, policy, 500ms, {}};
  out.rows.push_back({.request_class = ClassIndex(0),
                      .offered = offered,
                      .prompt_tokens = offered * 100,
                      .cached_tokens = offered * 40,
                      .output_tokens = offered * 20,
                      .finished = offered});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_first_report_counts_in_full_and_a_step_is_followed_within_seconds) {
  DemandBook book;
  Instant t = instant_at(0s);
  book.hear(report(10), ProcessName("r"), policy, t);
  BOOST_TEST(book.of(east, ClassIndex(0), t).rate_per_s == 20, tt::tolerance(1e-9));
  for (int i = 0; i < 20; ++i) book.hear(report(20), ProcessName("r"), policy, t += 500ms);
  const Expected e = book.of(east, ClassIndex(0), t);
  BOOST_TEST(e.rate_per_s > 38);
  BOOST_TEST(e.rate_per_s <= 40);
  BOOST_TEST(e.planned_per_s > e.rate_per_s);
  BOOST_TEST(e.shape.uncached_prompt_tokens == 60, tt::tolerance(1e-9));
  BOOST_TEST(e.shape.output_tokens == 20, tt::tolerance(1e-9));
  BOOST_TEST(e.shape.context_tokens == 110, tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(routers_add_up_a_silent_one_is_forgotten) {
  DemandBook book;
  const Instant t = instant_at(0s);
  book.hear(report(10), ProcessName("r1"), policy, t);
  book.hear(report(5), ProcessName("r2"), policy, t + 8s);
  BOOST_TEST(book.of(east, ClassIndex(0), t + 8s).rate_per_s == 30, tt::tolerance(1e-9));
  BOOST_TEST(book.of(east, ClassIndex(0), t + 11s).rate_per_s == 10, tt::tolerance(1e-9));
  BOOST_TEST(book.total_per_s(t + 11s) == 10, tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(what_was_not_measured_is_guessed_and_says_so) {
  DemandBook book;
  const Expected e = book.of(east, ClassIndex(3), instant_at(0s));
  BOOST_TEST(!e.measured);
  BOOST_TEST(e.planned_per_s == 0);
  BOOST_TEST(e.shape.output_tokens > 0);
  auto foreign = report(10);
  foreign.policy = digest_of("another");
  book.hear(foreign, ProcessName("r"), policy, instant_at(0s));
  BOOST_TEST(!book.of(east, ClassIndex(0), instant_at(0s)).measured);
}
