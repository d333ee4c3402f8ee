// Forecasts of demand: on made-up rates, and on the request rates of a production service (tests/data/servegen).
#include "optimizer/model/forecast.hpp"

#include <boost/test/unit_test.hpp>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <vector>

#include "messages/base/rng.hpp"
#include "tests/support/files.hpp"
#include "tests/support/source_dir.hpp"

using namespace signalbox;
using optimizer::Forecast;
namespace tt = boost::test_tools;

namespace {

constexpr double bucket_s = 0.5;

double poisson(Rng& rng, double mean) {
  double n = 0;
  for (double left = mean; (left -= rng.exponential(1)) > 0;) ++n;
  return n;
}

/// What came of a forecast that was made once a window, for the window after it.
struct Score {
  double windows = 0, under = 0, squares = 0, squares_of_last = 0;
  double coverage() const { return under / windows; }
  double error() const { return std::sqrt(squares / windows); }
  double error_of_last() const { return std::sqrt(squares_of_last / windows); }
};

/// Forecasts the mean rate of each window from the buckets before it, and compares with that of the window before.
Score score(const std::vector<double>& buckets, std::size_t skip) {
  const auto per_window = static_cast<std::size_t>(to_seconds(Forecast::window) / bucket_s);
  Forecast forecast;
  Score out;
  double last = 0;
  for (std::size_t from = 0; from + per_window <= buckets.size(); from += per_window) {
    const double expected = forecast.rate_per_s(Forecast::window / 2), upper = forecast.upper_per_s();
    double sum = 0;
    for (std::size_t i = from; i < from + per_window; ++i) {
      sum += buckets[i];
      forecast.observe(buckets[i], bucket_s, instant_at(from_seconds(static_cast<double>(i + 1) * bucket_s)));
    }
    const double rate = sum / to_seconds(Forecast::window);
    if (from >= skip) {
      out.windows += 1, out.under += rate <= upper ? 1 : 0;
      out.squares += (expected - rate) * (expected - rate);
      out.squares_of_last += (last - rate) * (last - rate);
    }
    last = rate;
  }
  return out;
}

std::vector<std::vector<double>> numbers_in(const std::string& path) {
  std::istringstream text(tests::read_file(tests::source_path(path)));
  std::vector<std::vector<double>> out;
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) {
    out.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');)
      std::from_chars(cell.data(), cell.data() + cell.size(), out.back().emplace_back());
  }
  return out;
}

/// Requests of every client between two hours of the day: gaps are Gamma distributed with the mean and the spread that the
/// data give the client in each ten minutes.
std::vector<double> arrivals_of_a_service(double from_h, double until_h) {
  std::map<int, std::vector<std::array<double, 3>>> windows;  // by client: start, rate, spread
  for (const auto& row : numbers_in("tests/data/servegen/deepseek-r1-clients.csv"))
    if (row[0] >= from_h * 3600 && row[0] < until_h * 3600)
      windows[static_cast<int>(row[1])].push_back({row[0] - from_h * 3600, row[2], row[3]});
  std::vector<double> buckets(static_cast<std::size_t>((until_h - from_h) * 3600 / bucket_s));
  Rng rng(11);
  for (const auto& [client, rows] : windows)
    for (const auto& [start, rate, spread] : rows) {
      const double shape = 1 / (spread * spread);
      for (double t = start + rng.gamma(shape, 1 / (shape * rate)); t < start + 600;
           t += rng.gamma(shape, 1 / (shape * rate)))
        buckets[static_cast<std::size_t>(t / bucket_s)] += 1;
    }
  return buckets;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_service_s_day_is_forecast_better_than_by_its_last_value_and_as_surely_as_promised) {
  for (const auto& [from, until] : {std::pair{0.0, 8.0}, {8.0, 16.0}, {16.0, 24.0}}) {
    const Score s = score(arrivals_of_a_service(from, until), 600);
    BOOST_TEST_MESSAGE("hours " << from << " to " << until << ": covered " << s.coverage() << ", error "
                                << s.error() << ", of the last value " << s.error_of_last());
    BOOST_TEST(std::abs(s.coverage() - Forecast::quantile) < 0.05);
    BOOST_TEST(s.error() < 0.95 * s.error_of_last());
  }
}

BOOST_AUTO_TEST_CASE(the_promise_holds_at_every_rate) {
  for (const double rate : {0.5, 2.0, 10.0, 50.0, 400.0}) {
    Rng rng(5);
    std::vector<double> buckets(20'000);
    for (double& n : buckets) n = poisson(rng, rate * bucket_s);
    const Score s = score(buckets, 600);
    BOOST_TEST(std::abs(s.coverage() - Forecast::quantile) < 0.05, "rate " << rate << ": " << s.coverage());
    BOOST_TEST(s.error() < 0.85 * s.error_of_last(), "rate " << rate);
  }
}

// Two weeks of a service's rates in windows of ten minutes: what the time of day adds to the last value.
BOOST_AUTO_TEST_CASE(the_time_of_day_helps_once_it_is_known) {
  const auto rows = numbers_in("tests/data/servegen/m-small-rate.csv");
  Forecast forecast;
  double error = 0, error_of_last = 0, count = 0;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    forecast.observe(rows[i][1] * 600, 600, instant_at(from_seconds(rows[i][0] + 600)));
    if (rows[i][0] < 3 * 86'400 || rows[i + 1][0] != rows[i][0] + 600) continue;
    const double next = rows[i + 1][1];
    error += std::abs(forecast.rate_per_s(600s) / next - 1);
    error_of_last += std::abs(rows[i][1] / next - 1);
    count += 1;
  }
  BOOST_TEST_MESSAGE("ten minutes ahead: off by " << error / count << ", by the last value "
                                                  << error_of_last / count);
  BOOST_TEST(error < 0.97 * error_of_last);
}

BOOST_AUTO_TEST_CASE(a_ramp_is_followed_where_a_mean_lags) {
  double off = 0, off_of_level = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Forecast forecast;
    double rate = 20;
    for (int i = 0; i < 300; ++i) {
      if (i >= 120) rate += 20.0 / 60 * bucket_s;  // doubled within a minute, and on
      forecast.observe(poisson(rng, rate * bucket_s), bucket_s, instant_at(from_seconds((i + 1) * bucket_s)));
      if (i < 200) continue;
      off += (forecast.rate_per_s(2s) - (rate + 20.0 / 60 * 2)) / rate;
      off_of_level += (forecast.level_per_s() - (rate + 20.0 / 60 * 2)) / rate;
    }
  }
  off /= 20 * 100, off_of_level /= 20 * 100;
  BOOST_TEST_MESSAGE("relative error in the mean: " << off << ", of the level alone " << off_of_level);
  BOOST_TEST(std::abs(off) < 0.07);
  BOOST_TEST(std::abs(off) < 0.35 * std::abs(off_of_level));
}

BOOST_AUTO_TEST_CASE(chance_is_no_trend) {
  double squares = 0, squares_of_level = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    Forecast forecast;
    for (int i = 0; i < 600; ++i) {
      forecast.observe(poisson(rng, 10 * bucket_s), bucket_s, instant_at(from_seconds((i + 1) * bucket_s)));
      if (i < 120) continue;
      squares += std::pow(forecast.rate_per_s(2s) - 10, 2);
      squares_of_level += std::pow(forecast.level_per_s() - 10, 2);
    }
  }
  BOOST_TEST(squares < 1.3 * squares_of_level, squares << " " << squares_of_level);
}

BOOST_AUTO_TEST_CASE(what_comes_late_and_all_at_once_is_no_rise) {
  Forecast forecast;
  for (int i = 1; i <= 60; ++i) forecast.observe(i % 2 + 2, bucket_s, instant_at(i * 500ms));
  forecast.observe(75, bucket_s, instant_at(30500ms));  // the requests of 15 s, of a router that stood still
  BOOST_TEST(forecast.rate_per_s() < 2 * 5);
  for (int i = 62; i <= 90; ++i) forecast.observe(i % 2 + 2, bucket_s, instant_at(i * 500ms));
  BOOST_TEST(forecast.rate_per_s() < 1.5 * 5);
}

BOOST_AUTO_TEST_CASE(nothing_is_expected_of_what_was_never_asked_for) {
  Forecast forecast;
  BOOST_TEST(forecast.rate_per_s(2s) == 0);
  BOOST_TEST(forecast.upper_per_s() == 0);
  for (int i = 1; i < 100; ++i) forecast.observe(0, bucket_s, instant_at(i * 500ms));
  BOOST_TEST(forecast.upper_per_s() == 0);
  Forecast steady;
  for (int i = 1; i < 100; ++i) steady.observe(10, bucket_s, instant_at(i * 500ms));
  BOOST_TEST(steady.rate_per_s(2s) == 20, tt::tolerance(1e-6));
  steady.restart(40, 2);
  BOOST_TEST(steady.rate_per_s(2s) == 40, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(what_is_sure_is_less_than_comes_and_nears_it_with_time) {
  constexpr double rate = 20;
  double over = 0, looks = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    Forecast forecast;
    for (int i = 1; i <= 200; ++i) {
      forecast.observe(poisson(rng, rate * bucket_s), bucket_s, instant_at(from_seconds(i * bucket_s)));
      if (i == 6) over += forecast.sure_per_s() > rate, ++looks;
    }
    BOOST_TEST(forecast.sure_per_s() > 0.8 * rate);
    BOOST_TEST(forecast.sure_per_s() < forecast.rate_per_s());
  }
  BOOST_TEST(over / looks < 0.25);
}
