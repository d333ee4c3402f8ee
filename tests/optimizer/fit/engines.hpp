// A made-up engine with a known curve, and readings of it.
#pragma once

#include <cmath>
#include <vector>

#include "messages/base/rng.hpp"
#include "optimizer/fit/fit.hpp"

namespace signalbox::tests {

using namespace signalbox::optimizer;

inline const StepTime truth{0.012, 8e-5, 3e-8, 4e-5, 1.0};
/// A declared profile that is wrong by up to 2x, and says so.
inline const Prior wrong_by_two{{0.006, 1.6e-4, 6e-8, 2e-5, 1.0}, {1.0, 1.0, 1.0, 1.0}};

inline Load load_of(double sequences, double prompt = 1000, double output = 200) {
  return {sequences, {prompt, output, prompt + output / 2}};
}

/// Loads between the bounds, of many shapes.
inline std::vector<Load> loads(Rng& rng, std::size_t count, double least = 1, double most = 128) {
  std::vector<Load> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(
        load_of(rng.uniform(least, most), std::exp(rng.uniform(4.0, 9.0)), std::exp(rng.uniform(3.0, 7.0))));
  return out;
}

inline Observation read(const StepTime& step, const Load& load, double factor = 1.0) {
  return {load, tpot_s(step, load) * factor, std::nullopt};
}

inline double off(double got, double wanted) { return std::abs(got / wanted - 1.0); }

inline double worst_parameter(const StepTime& got, const StepTime& wanted) {
  double worst = 0;
  for (std::size_t i = 0; i < parameters; ++i)
    worst = std::max(worst, off(to_array(got)[i], to_array(wanted)[i]));
  return worst;
}

}  // namespace signalbox::tests
