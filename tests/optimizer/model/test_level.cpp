#include "optimizer/model/level.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;
namespace tt = boost::test_tools;

namespace {

/// Observations of one unit each with normal noise, half a minute remembered at two a second.
struct Watch {
  explicit Watch(double alarm, std::uint64_t seed = 1) : level(alarm), rng(seed) {}
  void see(double truth, double noise, double believed_noise) {
    const double value = truth + noise * rng.normal();
    level.observe({value, 1}, level.exposure() > 0 ? (value - level.value()) / believed_noise : 0, keep);
  }
  static constexpr double keep = 0.983;
  Level level;
  Rng rng;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_first_observation_counts_in_full_and_the_next_average_out) {
  Level level(8);
  BOOST_TEST(level.exposure() == 0);
  level.observe({30, 3}, 0, 0.9);
  BOOST_TEST(level.value() == 10, tt::tolerance(1e-12));
  level.observe({6, 1}, -1, 1);
  BOOST_TEST(level.value() == 9, tt::tolerance(1e-12));
  level.move_to(5);
  BOOST_TEST(level.value() == 5, tt::tolerance(1e-12));
  BOOST_TEST(level.exposure() == 4, tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(what_holds_is_known_better_than_any_observation) {
  double squares = 0;
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Watch watch(8, seed);
    for (int i = 0; i < 1000; ++i) {
      watch.see(100, 20, 20);
      if (i < 100) continue;
      squares += std::pow(watch.level.value() - 100, 2);
      ++seen;
    }
  }
  BOOST_TEST(std::sqrt(squares / seen) < 2.5);  // a mean of 59 with falling weights: 20 / sqrt(118) = 1.8
}

BOOST_AUTO_TEST_CASE(a_step_is_followed_within_a_few_observations) {
  struct Row {
    const char* name;
    double to, believed_noise;
    int within;
  };
  for (const Row& row :
       {Row{"three deviations up", 160, 20, 7}, Row{"and down", 40, 20, 7}, Row{"far up", 1000, 20, 3},
        Row{"far up, with noise thought less than it is", 300, 5, 4}}) {
    int late = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      Watch watch(8, seed);
      for (int i = 0; i < 300; ++i) watch.see(100, 20, row.believed_noise);
      for (int i = 0; i < row.within; ++i) watch.see(row.to, 20, row.believed_noise);
      late += std::abs(watch.level.value() - row.to) > 0.35 * std::abs(row.to - 100);
    }
    BOOST_TEST(late <= 10, row.name << ": " << late << " of 100 are late");
  }
}

BOOST_AUTO_TEST_CASE(two_outliers_are_no_step) {
  Watch watch(8);
  for (int i = 0; i < 300; ++i) watch.see(100, 1, 1);
  const double before = watch.level.value();
  for (int i = 0; i < 2; ++i) watch.see(1000, 1, 1);
  BOOST_TEST(watch.level.value() < before + 40);  // averaged in, not believed
  BOOST_TEST(watch.level.exposure() > 50);
}

BOOST_AUTO_TEST_CASE(false_alarms_are_rare) {
  int alarms = 0;
  const int observations = 200'000;
  Watch watch(8, 7);
  double exposure = 0;
  for (int i = 0; i < observations; ++i) {
    watch.see(100, 20, 20);
    alarms += watch.level.exposure() < exposure - 1;
    exposure = watch.level.exposure();
  }
  BOOST_TEST_MESSAGE(alarms << " in " << observations);
  BOOST_TEST(alarms < observations / 3000);
}
