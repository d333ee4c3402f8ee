#include <boost/test/unit_test.hpp>
#include <cmath>

#include "messages/base/rng.hpp"
#include "optimizer/model/service_curve.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;

namespace {

CongestionCurve random_curve(Rng& rng) {
  CongestionCurve curve;
  curve.q = rng.lognormal(2.0, 1.5);
  curve.capacity = rng.uniform(0.2, 5.0);
  curve.ceiling = curve.capacity * rng.uniform(0.3, 0.97);
  return curve;
}

}  // namespace

BOOST_AUTO_TEST_CASE(derivatives_agree_with_differences_below_and_above_the_ceiling) {
  Rng rng(1);
  for (int i = 0; i < 500; ++i) {
    const CongestionCurve curve = random_curve(rng);
    const double y = curve.ceiling * rng.uniform(0.01, 1.6);
    const double h = 1e-6 * curve.capacity;
    if (std::abs(y - curve.ceiling) < 2 * h) continue;
    const double slope = (curve.cost(y + h) - curve.cost(y - h)) / (2 * h);
    const double bend = (curve.marginal(y + h) - curve.marginal(y - h)) / (2 * h);
    BOOST_TEST(slope == curve.marginal(y), boost::test_tools::tolerance(1e-5));
    BOOST_TEST(bend == curve.curvature(y), boost::test_tools::tolerance(1e-5));
  }
}

BOOST_AUTO_TEST_CASE(value_slope_and_curvature_are_continuous_at_the_ceiling) {
  const CongestionCurve curve{50.0, 1.0, 0.85};
  const double above = std::nextafter(curve.ceiling, 1.0);
  BOOST_TEST(curve.cost(above) == curve.cost(curve.ceiling), boost::test_tools::tolerance(1e-9));
  BOOST_TEST(curve.marginal(above) == curve.marginal(curve.ceiling), boost::test_tools::tolerance(1e-9));
  BOOST_TEST(curve.curvature(above) == curve.curvature(curve.ceiling), boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(the_inverse_inverts_and_the_conjugate_is_the_maximum) {
  Rng rng(2);
  for (int i = 0; i < 500; ++i) {
    const CongestionCurve curve = random_curve(rng);
    const double y = curve.ceiling * rng.uniform(0.01, 0.999);
    BOOST_TEST(curve.load_at(curve.marginal(y)) == y, boost::test_tools::tolerance(1e-9));
    const double price = curve.q * rng.uniform(0.5, 3000.0);
    const double best = curve.conjugate(price);
    for (int k = 0; k <= 50; ++k) {
      const double other = curve.ceiling * k / 50.0;
      BOOST_TEST(price * other - curve.cost(other) <= best + 1e-9 * std::abs(best));
    }
    const double h = 1e-5 * price;
    const double slope = (curve.conjugate(price + h) - curve.conjugate(price - h)) / (2 * h);
    BOOST_TEST(std::abs(slope - curve.load_at(price)) < 1e-4 * curve.capacity);
  }
}

// With prefill and context left out, the time per token at a token rate t is a / (1 - b t).
BOOST_AUTO_TEST_CASE(the_curve_is_the_closed_form_of_continuous_batching) {
  const StepTime step{0.01, 0.0002, 0.0, 0.0, 1.0};
  const RequestShape shape{0.0, 100.0, 0.0};
  const double rate = 30.0;  // requests/s: 3000 tokens/s
  const double load = rate * work_s(step, shape);
  BOOST_TEST(load == 0.0002 * 3000.0, boost::test_tools::tolerance(1e-12));
  const CongestionCurve curve{unloaded_latency_s(step, shape, {}) / work_s(step, shape), 1.0, 0.95};
  const double tpot = 0.01 / (1.0 - 0.0002 * 3000.0);
  BOOST_TEST(curve.cost(load) == rate * 100.0 * tpot,
             boost::test_tools::tolerance(1e-12));  // Little: requests in flight
}

// A batch of N: the load at which N requests are in flight has N of them by the curve.
BOOST_AUTO_TEST_CASE(a_cap_on_the_batch_is_a_cap_on_the_load) {
  const StepTime step{0.01, 0.0002, 1e-8, 3e-5, 1.3};
  const RequestShape shape{400.0, 150.0, 900.0};
  const double latency = unloaded_latency_s(step, shape, {}), work = work_s(step, shape);
  const double load = load_at_in_flight(64.0, latency, work, 0.8);
  const CongestionCurve curve{latency / work, 0.8, 0.79};
  BOOST_TEST(curve.cost(load) == 64.0, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_slow_engine_takes_more_work_and_more_time) {
  const RequestShape shape{400.0, 150.0, 900.0};
  const StepTime fast{0.01, 0.0002, 1e-8, 3e-5, 1.0}, slow{0.01, 0.0002, 1e-8, 3e-5, 3.0};
  BOOST_TEST(work_s(slow, shape) == 3.0 * work_s(fast, shape), boost::test_tools::tolerance(1e-12));
  BOOST_TEST(unloaded_latency_s(slow, shape, {}) == 3.0 * unloaded_latency_s(fast, shape, {}),
             boost::test_tools::tolerance(1e-12));
}
