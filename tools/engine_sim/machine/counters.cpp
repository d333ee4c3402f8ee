#include "tools/engine_sim/machine/counters.hpp"

#include <algorithm>
#include <array>

namespace signalbox::engine_sim {
namespace {
// vLLM's own bucket bounds, so that dashboards and adapters meet what they know.
constexpr std::array first_token{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                                 1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
constexpr std::array inter_token{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                 0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr std::array request{0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
                             30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
constexpr std::array iteration{1.0,   8.0,    16.0,   32.0,   64.0,   128.0,  256.0,
                               512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0};
}  // namespace

std::span<const double> first_token_bounds_s() { return first_token; }
std::span<const double> inter_token_bounds_s() { return inter_token; }
std::span<const double> request_bounds_s() { return request; }
std::span<const double> iteration_bounds_tokens() { return iteration; }

void Histogram::observe(double value, std::uint64_t times) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  if (bucket != bounds_.end()) counts_[static_cast<std::size_t>(bucket - bounds_.begin())] += times;
  count_ += times;
  sum_ += value * static_cast<double>(times);
}

}  // namespace signalbox::engine_sim
