#include "actors/global_optimizer/machine/caps.hpp"

#include <boost/test/unit_test.hpp>

#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
namespace tt = boost::test_tools;

BOOST_AUTO_TEST_CASE(rows_hold_their_caps_and_their_sum_where_there_is_room) {
  Rng rng(11);
  int moved = 0;
  for (int round = 0; round < 2000; ++round) {
    schema::FleetTable table;
    table.clusters.resize(2);
    table.clusters[0].name = ClusterName("c0"), table.clusters[1].name = ClusterName("c1");
    std::vector<Share> row;
    double sum = 0;
    for (std::size_t e = 0; e < 8; ++e) {
      schema::EngineRow engine;
      engine.cluster = ClusterIndex(e / 4);
      engine.rack = DomainName("rack" + std::to_string(e / 2));
      table.engines.push_back(engine);
      row.push_back({EngineIndex(e), rng.chance(0.5) ? rng.uniform() : 0, rng.uniform(0.1, 1)});
      sum += row.back().weight;
    }
    if (sum <= 0) continue;
    for (Share& share : row) share.weight /= sum;
    const auto before = row;
    policy::Limits limits;
    limits.engine_weight_cap = 0.3;
    limits.rack_weight_cap = 0.45;
    limits.cluster_weight_cap = 0.75;
    hold_caps(row, Domains(table), limits);
    double after = 0, rack[4] = {}, cluster[2] = {};
    for (std::size_t e = 0; e < 8; ++e) {
      BOOST_TEST(row[e].weight <= 0.3 + 1e-9);
      BOOST_TEST(row[e].weight >= 0);
      after += row[e].weight, rack[e / 2] += row[e].weight, cluster[e / 4] += row[e].weight;
      moved += row[e].weight != before[e].weight;
    }
    BOOST_TEST(after == 1, tt::tolerance(1e-9));
    for (const double r : rack) BOOST_TEST(r <= 0.45 + 1e-9);
    for (const double c : cluster) BOOST_TEST(c <= 0.75 + 1e-9);
  }
  BOOST_TEST(moved > 1000);
}

BOOST_AUTO_TEST_CASE(what_gets_nothing_new_takes_nothing_and_without_caps_nothing_moves) {
  schema::FleetTable table;
  table.clusters.resize(1);
  table.engines.resize(3);
  for (auto& e : table.engines) e.cluster = ClusterIndex(0);
  std::vector<Share> row{{EngineIndex(0), 1, 1}, {EngineIndex(1), 0, 0}, {EngineIndex(2), 0, 1}};
  hold_caps(row, Domains(table), {});
  BOOST_TEST(row[0].weight == 1);
  policy::Limits limits;
  limits.engine_weight_cap = 0.6;
  hold_caps(row, Domains(table), limits);
  BOOST_TEST(row[0].weight == 0.6, tt::tolerance(1e-9));
  BOOST_TEST(row[1].weight == 0);
  BOOST_TEST(row[2].weight == 0.4, tt::tolerance(1e-9));
}
