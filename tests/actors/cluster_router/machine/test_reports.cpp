#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/machine/reports.hpp"

using namespace signalbox;
using namespace signalbox::cluster_router;

namespace {
routing::Batch batch(std::uint32_t loop, std::uint64_t number, double inflight, std::uint64_t attempts) {
  routing::Batch out;
  out.loop = loop;
  out.number = number;
  out.policy = digest_of("policy");
  out.table = digest_of("table");
  out.demand = {{.request_class = ClassIndex(0), .offered = attempts}};
  out.outcomes = {
      {.engine = EngineIndex(1), .inflight = inflight, .attempts = attempts, .penalty = 1.0 / (loop + 1)}};
  out.served = {{ClassIndex(0), EngineIndex(1), attempts, 0, 0}};
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(counts_add_up_and_gauges_are_each_loops_last_word) {
  Reports reports(ClusterName("east"));
  BOOST_TEST(reports.empty());
  reports.add(batch(0, 1, 5, 10));
  reports.add(batch(0, 2, 3, 1));
  reports.add(batch(1, 1, 2, 4));
  const auto [demand, outcome] = reports.take(1s);
  BOOST_TEST(demand.rows.at(0).offered == 15);
  BOOST_TEST(outcome.number == 1);
  BOOST_TEST(outcome.engines.at(0).attempts == 15);
  BOOST_TEST(outcome.engines.at(0).inflight == 5);  // 3 of loop 0 and 2 of loop 1
  BOOST_TEST(outcome.engines.at(0).penalty == 0.5);
  BOOST_TEST(outcome.served.at(0).requests == 15);
  const auto next = reports.take(1s);  // nothing new: what is in flight is still there
  BOOST_TEST(next.outcome.engines.at(0).attempts == 0);
  BOOST_TEST(next.outcome.engines.at(0).inflight == 5);
}

BOOST_AUTO_TEST_CASE(a_report_knows_which_batches_it_covers) {
  Reports reports(ClusterName("east"));
  reports.add(batch(0, 1, 0, 1));
  reports.take(1s);
  reports.add(batch(0, 2, 0, 1));
  reports.add(batch(1, 1, 0, 1));
  reports.take(1s);
  BOOST_TEST(reports.batches_of(0).empty());
  BOOST_TEST(reports.batches_of(1) == (std::vector<std::uint64_t>{1}), boost::test_tools::per_element());
  BOOST_TEST(reports.batches_of(2) == (std::vector<std::uint64_t>{2, 1}), boost::test_tools::per_element());
  BOOST_TEST(reports.batches_of(9) == (std::vector<std::uint64_t>{2, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(lost_batches_show_and_foreign_ones_are_told_apart) {
  Reports reports(ClusterName("east"));
  reports.add(batch(0, 1, 0, 1));
  reports.add(batch(0, 4, 0, 1));
  BOOST_TEST(reports.take(1s).outcome.queue_dropped == 2);
  auto other = batch(0, 5, 0, 1);
  other.policy = digest_of("another policy");
  BOOST_TEST(reports.is_foreign(other));
  BOOST_TEST(!reports.is_foreign(batch(0, 5, 0, 1)));
}
