#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "actors/engine_proxy/machine/life.hpp"
#include "actors/engine_proxy/machine/slowness.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;
namespace tt = boost::test_tools;

namespace {
Reading reading(double running, double tokens, double seconds) {
  Reading out;
  out.running = running;
  out.token_time = Accumulated{seconds, tokens};
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_that_keeps_to_its_curve_is_as_slow_as_declared) {
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const optimizer::StepTime curve{rng.uniform(0.001, 0.05), rng.uniform(1e-5, 1e-3), rng.uniform(0, 1e-7),
                                    rng.uniform(1e-6, 1e-4)};
    const double s = std::exp(rng.uniform(-2, 2)), n = rng.uniform(1, 64), context = rng.uniform(0, 1e5);
    const double prefill = rng.uniform(0, 0.5 / (s * curve.c_s));
    const double step = s * (curve.a_s + curve.b_s * n + curve.k_s * context) / (1 - s * curve.c_s * prefill);
    BOOST_TEST(step / predicted_step_s({step, n, context, prefill * step, 1}, curve) == s,
               tt::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(idle_or_thin_readings_say_nothing) {
  const Reading base = reading(4, 100, 2);
  BOOST_TEST(step_between(base, reading(4, 150, 3), 1s, 0).has_value());
  BOOST_TEST(!step_between(base, reading(0, 150, 3), 1s, 0).has_value());
  BOOST_TEST(!step_between(base, reading(4, 103, 2.1), 1s, 0).has_value());
  BOOST_TEST(!step_between(base, reading(4, 150, 2), 1s, 0).has_value());
  BOOST_TEST(!step_between(base, reading(4, 150, 3), 0s, 0).has_value());
  Reading unknown = reading(4, 150, 3);
  unknown.running.reset();
  BOOST_TEST(!step_between(base, unknown, 1s, 0).has_value());
}

BOOST_AUTO_TEST_CASE(without_a_histogram_the_token_rate_serves) {
  Reading a, b;
  a.running = b.running = 5;
  a.output_tokens_total = 100, b.output_tokens_total = 200;
  BOOST_TEST(step_between(a, b, 1s, 0).value().step_s == 0.05, tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(an_engine_that_counts_its_steps_tells_its_batch_and_its_prompts) {
  Reading a = reading(4, 100, 2), b = reading(9, 160, 3.2);
  a.steps_total = 10, b.steps_total = 20;
  a.prompt_tokens_total = 0, b.prompt_tokens_total = 700;
  a.cached_tokens_total = 0, b.cached_tokens_total = 200;
  const auto counted = step_between(a, b, 1s, 0).value();
  BOOST_TEST(counted.running == 6, tt::tolerance(1e-12));
  BOOST_TEST(counted.prefill_tokens == 50 * (1 - 0.5 / 6), tt::tolerance(1e-12));
  b.steps_total.reset();
  const auto guessed = step_between(a, b, 1s, 0).value();
  BOOST_TEST(guessed.running == 6.5, tt::tolerance(1e-12));
  BOOST_TEST(guessed.prefill_tokens == 500 * 0.02, tt::tolerance(1e-12));
}

namespace {

constexpr optimizer::StepTime declared{0.02, 0.001, 0, 1e-4};

/// Readings of an engine that is `slow` times its curve, with noise. Every third prompt is computed in one reading and
/// paid for by the tokens of the next, as engines count.
struct Observed {
  explicit Observed(std::uint64_t seed = 1) : rng(seed) {}
  void see(double slow, int readings) {
    for (int i = 0; i < readings; ++i) {
      const bool computes = at % 3 == 0, pays = at % 3 == 1;
      ++at;
      const double running = rng.uniform(2, 12),
                   step = slow * (0.02 + 0.001 * running) * std::exp(0.05 * rng.normal());
      const double tokens = running * 0.25 / step, prefill_per_s = 1200;
      const double paid = slow * 1e-4 * prefill_per_s * step;
      const StepSample sample{step + (pays ? paid : 0), running, 0, computes ? prefill_per_s * step : 0,
                              tokens};
      slowness.observe(sample, predicted_step_s(sample, declared), 0, 250ms);
    }
  }
  Rng rng;
  Slowness slowness;
  int at = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_that_keeps_its_speed_is_known_within_a_few_percent) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Observed engine(seed);
    engine.see(1, 60);
    double least = 9, most = 0;
    for (int i = 0; i < 400; ++i) {
      engine.see(1, 1);
      least = std::min(least, engine.slowness.value()), most = std::max(most, engine.slowness.value());
    }
    BOOST_TEST(least > 0.95);
    BOOST_TEST(most < 1.05);
  }
}

BOOST_AUTO_TEST_CASE(three_times_slower_is_seen_within_a_second_and_then_known) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Observed engine(seed);
    engine.see(1, 200);
    engine.see(3, 4);
    BOOST_TEST(engine.slowness.value() > 2.4, "seed " << seed << ": " << engine.slowness.value());
    engine.see(3, 12);
    BOOST_TEST(engine.slowness.value() == 3, tt::tolerance(0.1));
    engine.see(1, 5);
    BOOST_TEST(engine.slowness.value() < 1.3, "seed " << seed << ": " << engine.slowness.value());
  }
}

BOOST_AUTO_TEST_CASE(an_idle_engine_is_forgiven_and_what_is_out_of_range_is_bounded) {
  Observed engine;
  BOOST_TEST(engine.slowness.value() == 1);
  engine.slowness.idle(60s);
  BOOST_TEST(engine.slowness.value() == 1);
  engine.see(3, 20);
  engine.slowness.idle(600s);
  BOOST_TEST(engine.slowness.value() == 1, tt::tolerance(0.01));
  for (int i = 0; i < 100; ++i) engine.slowness.observe({1e6, 4, 0, 0, 100}, 0.024, 0, 250ms);
  BOOST_TEST(engine.slowness.value() == Slowness::most, tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(another_life_is_told_by_start_time_or_falling_counters) {
  const auto totals = [](double prompt, double output) {
    Reading out;
    out.prompt_tokens_total = prompt, out.output_tokens_total = output;
    return out;
  };
  Life life("", {7, 9});
  BOOST_TEST(life.observe(totals(5, 5)));  // the first: to be kept
  BOOST_TEST(life.incarnation().counter == 7);
  BOOST_TEST(!life.observe(totals(5, 6)));
  BOOST_TEST(life.observe(totals(1, 7)));
  BOOST_TEST(life.incarnation().counter == 8);
  Reading started = totals(1, 8);
  started.start_time_s = 100;
  BOOST_TEST(!life.observe(started));  // it only began to say when it started
  Life again(life.text(), {1, 1});     // the proxy was restarted, the engine was not
  BOOST_TEST(!again.observe(started));
  BOOST_TEST((again.incarnation() == life.incarnation()));
  started.start_time_s = 200;
  BOOST_TEST(again.observe(started));
  BOOST_TEST(again.incarnation().counter == 9);
}
