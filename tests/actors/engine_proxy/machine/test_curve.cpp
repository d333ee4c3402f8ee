// What a proxy learns of simulated engines: of the batching machine itself, through the metrics that it serves.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "actors/kit/shape/curve.hpp"
#include "tests/actors/engine_proxy/machine/simulated.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;
using optimizer::StepTime;
using testing::Simulated;
namespace tt = boost::test_tools;

namespace {

constexpr StepTime real{0.020, 0.0008, 1e-8, 1e-4, 1.0};
constexpr std::uint64_t seeds = 12;

StepTime times(const StepTime& step, double a, double b, double c) {
  return {step.a_s * a, step.b_s * b, step.k_s, step.c_s * c, 1.0};
}

/// Time per token at a batch of the load's mean request: 400 tokens missed and held, 100 said.
double token_s(const StepTime& step, double batch) {
  return optimizer::tpot_s(step, {batch, {400, 100, 450}});
}

/// The worst relative error of the predicted time per token over the batches between the 5th and 95th percentile.
double worst_error(const Simulated& engine, double really_slow = 1) {
  std::vector<double> seen;
  for (const double n : engine.batches)
    if (n > 0) seen.push_back(n);
  std::sort(seen.begin(), seen.end());
  const double least = seen[seen.size() / 20], most = seen[seen.size() * 19 / 20];
  double worst = 0;
  for (double n = least; n <= most; n += 1)
    worst = std::max(worst, std::abs(engine.signal().slowness * token_s(engine.curve().step, n) /
                                         (really_slow * token_s(real, n)) -
                                     1));
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_profile_wrong_by_two_is_right_within_5_percent_after_a_minute) {
  for (const auto& [a, b, c] : {std::tuple{2.0, 2.0, 2.0}, {0.5, 0.5, 0.5}, {0.5, 2.0, 1.0}, {2.0, 0.5, 2.0}})
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Simulated engine(real, times(real, a, b, c), seed);
      engine.run(60s, 4);
      BOOST_TEST(worst_error(engine) < 0.05,
                 "a " << a << " b " << b << " c " << c << " seed " << seed << ": " << worst_error(engine));
      BOOST_TEST(engine.signal().refused_readings <= 5);
    }
}

// Each request's output is two and a half times as long in the second half: the batch grows, the prompts per token shrink.
BOOST_AUTO_TEST_CASE(parameters_are_right_within_5_percent_once_the_load_has_varied) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Simulated engine(real, times(real, 2, 0.5, 2), seed);
    engine.run(120s, 2, 400, 100);
    engine.run(120s, 5, 400, 100);
    engine.run(120s, 4, 100, 250);
    const Curve curve = engine.curve();
    BOOST_REQUIRE(curve.fit.has_value());
    const double s = engine.signal().slowness;
    for (const auto& [got, wanted] :
         {std::pair{curve.step.a_s, real.a_s}, {curve.step.b_s, real.b_s}, {curve.step.c_s, real.c_s}})
      worst = std::max(worst, std::abs(s * got / wanted - 1));
    BOOST_TEST(curve.most_batch > 2 * curve.least_batch);
  }
  BOOST_TEST_MESSAGE("worst parameter off by " << worst);
  BOOST_TEST(worst < 0.05);
}

BOOST_AUTO_TEST_CASE(the_published_covariance_grows_away_from_the_loads_visited) {
  Simulated engine(real, times(real, 2, 2, 2), 3);
  engine.run(60s, 4);
  const auto profile = engine.profiles().back();
  BOOST_REQUIRE(profile.covariance.size() == 10u);
  BOOST_REQUIRE(profile.variance.size() == 4u);
  BOOST_TEST(schema::check(profile).has_value());
  BOOST_TEST(profile.covariance[4] == profile.variance[1]);
  const Curve curve = engine.curve();
  const auto deviation = [&](double n) {
    return std::sqrt(optimizer::predicted_variance(*curve.fit, {n, {4, 1, 450}}));
  };
  const double here = deviation((profile.least_batch + profile.most_batch) / 2);
  BOOST_TEST(here < 0.02);
  BOOST_TEST(deviation(4 * profile.most_batch) > 2 * here);
  BOOST_TEST(deviation(16 * profile.most_batch) > deviation(4 * profile.most_batch));
}

BOOST_AUTO_TEST_CASE(half_speed_is_seen_within_5_seconds_and_the_shape_is_kept) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Simulated engine(real, real, seed);
    engine.run(60s, 4);
    const StepTime before = engine.curve().step;
    engine.slow_down(2);
    engine.run(5s, 4);
    const double now = engine.signal().slowness * token_s(engine.curve().step, 12) / token_s(real, 12);
    BOOST_TEST(now == 2, tt::tolerance(0.15));
    engine.run(55s, 4);
    BOOST_TEST(worst_error(engine, 2) < 0.06, "seed " << seed << ": " << worst_error(engine, 2));
    BOOST_TEST(engine.signal().slowness == 2, tt::tolerance(0.1));
    BOOST_TEST(token_s(engine.curve().step, 12) == token_s(before, 12), tt::tolerance(0.1));
    engine.slow_down(1);
    engine.run(5s, 4);
    BOOST_TEST(engine.signal().slowness * token_s(engine.curve().step, 8) == token_s(real, 8),
               tt::tolerance(0.15));
  }
}

// Load that doubles moves the batch to where a wrong profile was never tested. That is no step of the engine's speed.
BOOST_AUTO_TEST_CASE(a_new_load_is_not_taken_for_a_slower_engine) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Simulated engine(real, times(real, 1, 0.4, 1), seed);
    engine.run(60s, 2);
    engine.run(60s, 5);
    BOOST_TEST(engine.signal().slowness == 1, tt::tolerance(0.1));
    BOOST_TEST(worst_error(engine) < 0.05, "seed " << seed << ": " << worst_error(engine));
  }
}

// Prompts of half a second each, counted when they are complete. Where they come faster than they can be computed, few tokens come
// in a reading; what was computed meanwhile must not get lost, or prompts would seem cheap, and more of them would be sent.
BOOST_AUTO_TEST_CASE(what_long_prompts_cost_is_known_on_a_quiet_engine_and_on_a_swamped_one) {
  constexpr StepTime large{0.00918, 4.55e-5, 2.08e-8, 4.24e-5, 1.0};
  double worst = 0, least_c = 1, most_c = 1;
  for (const double rate : {0.8, 1.3, 2.5})
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Simulated engine(large, large, seed);
      for (int minute = 0; minute < 4; ++minute) {
        engine.run(60s, rate, 9000, 300);
        const double s = engine.signal().slowness;
        const StepTime& step = engine.curve().step;
        const optimizer::Load load{15, {9000, 300, 9150}};
        const double off = s * optimizer::tpot_s(step, load) / optimizer::tpot_s(large, load);
        worst = std::max({worst, off, 1 / off});
        least_c = std::min(least_c, s * step.c_s / large.c_s);
        most_c = std::max(most_c, s * step.c_s / large.c_s);
      }
    }
  BOOST_TEST_MESSAGE("time per token off by up to " << worst << ", prefill " << least_c << " to " << most_c);
  BOOST_TEST(worst < 1.2);
  BOOST_TEST(least_c > 0.67);
  BOOST_TEST(most_c < 1.5);
}

BOOST_AUTO_TEST_CASE(an_engine_without_a_declared_curve_gets_one) {
  Simulated engine(real, {}, 1);
  engine.run(60s, 4);
  BOOST_TEST(worst_error(engine) < 0.05);
  BOOST_TEST(engine.profiles().back().step_s > 0);
}

BOOST_AUTO_TEST_CASE(idle_and_stale_readings_teach_nothing) {
  Simulated engine(real, times(real, 2, 2, 2), 1);
  engine.run(60s, 0);
  BOOST_TEST(engine.curve().number == 0u);
  BOOST_TEST(engine.signal().slowness_samples == 0u);
  engine.run(20s, 4);
  const auto number = engine.curve().number, samples = engine.signal().slowness_samples;
  const auto refused = engine.signal().refused_readings;
  engine.cut_off(true);
  engine.run(30s, 4);
  BOOST_TEST(engine.signal().slowness_samples == samples);
  engine.cut_off(false);
  engine.run(260ms, 4);
  BOOST_TEST(engine.signal().slowness_samples == samples);
  BOOST_TEST(engine.signal().refused_readings == refused + 1);
  BOOST_TEST(engine.curve().number == number);
}

namespace {

/// A batch of n, 20 ms a token, one prompt token in ten.
Reading reading_of(double running, double tokens, double time_s) {
  Reading out;
  out.running = running;
  out.token_time = Accumulated{time_s, tokens};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(readings_that_contradict_themselves_teach_nothing) {
  CurveLearner learner(real);
  const auto at = instant_at(1s);
  const Reading base = reading_of(8, 0, 0);
  struct Row {
    const char* name;
    Reading after;
    Lesson lesson;
  };
  Row rows[] = {
      {"eight sequences, 100 tokens of 20 ms in 250 ms", reading_of(8, 100, 2.0), Lesson::learnt},
      {"as many tokens as forty sequences have", reading_of(8, 500, 10.0), Lesson::contradictory},
      {"tokens of one sequence where forty run", reading_of(40, 12, 0.25), Lesson::contradictory},
      {"more memory in use than there is", reading_of(8, 100, 2.0), Lesson::contradictory},
      {"no batch", reading_of(0, 100, 2.0), Lesson::idle},
      {"no tokens", reading_of(8, 0, 0), Lesson::idle},
  };
  rows[3].after.kv_usage = 7;
  for (const Row& row : rows) {
    const Reading before = row.after.running.value_or(0) > 8 ? reading_of(40, 0, 0) : base;
    BOOST_TEST((learner.observe(before, row.after, 250ms, 1000, at) == row.lesson), row.name);
  }
  BOOST_TEST((learner.observe(base, rows[0].after, 3s, 1000, at) == Lesson::stale));
  BOOST_TEST(learner.refused() == 4u);
  BOOST_TEST(learner.samples() == 1u);
}

BOOST_AUTO_TEST_CASE(a_slowness_is_never_used_with_another_curve) {
  schema::EngineProfile profile;
  schema::EngineSignal signal;
  BOOST_TEST(!kit::slowness_for(nullptr, nullptr).has_value());
  BOOST_TEST(!kit::slowness_for(nullptr, &signal).has_value());
  signal.slowness = 3, signal.slowness_samples = 9;
  BOOST_TEST(kit::slowness_for(nullptr, &signal).value() == 3);
  BOOST_TEST(kit::slowness_for(&profile, &signal).value() == 3);
  profile.curve = 2, profile.slowness = 1.1;
  BOOST_TEST(kit::slowness_for(&profile, &signal).value() == 1.1);
  BOOST_TEST(kit::slowness_for(&profile, nullptr).value() == 1.1);
  signal.curve = 2;
  BOOST_TEST(kit::slowness_for(&profile, &signal).value() == 3);
}

BOOST_AUTO_TEST_CASE(another_life_starts_from_the_profile) {
  CurveLearner learner(real);
  Reading before = reading_of(8, 0, 0);
  for (int i = 1; i <= 100; ++i) {
    const Reading after = reading_of(8, 50 * i, 2.0 * i);
    learner.observe(before, after, 250ms, 1000, instant_at(i * 250ms));
    before = after;
  }
  const auto number = learner.curve().number;
  BOOST_TEST(number > 0u);
  BOOST_TEST(learner.curve().step.a_s > 1.2 * real.a_s);
  learner.restart();
  BOOST_TEST(learner.curve().step.a_s == real.a_s);
  BOOST_TEST(learner.curve().number == number + 1);
  BOOST_TEST(learner.slowness() == 1);
}
