#include "messages/base/rng.hpp"

#include <cmath>
#include <numbers>

namespace signalbox {

namespace {
__extension__ using Wide = unsigned __int128;
}

Rng::Rng(std::uint64_t seed) noexcept {
  for (auto& word : s_) word = mix64(seed += 0x9e3779b97f4a7c15ULL);
}

std::uint64_t Rng::below(std::uint64_t n) noexcept {
  Wide product = static_cast<Wide>(next()) * n;
  auto low = static_cast<std::uint64_t>(product);
  if (low < n) {
    const std::uint64_t threshold = (0 - n) % n;
    while (low < threshold) {
      product = static_cast<Wide>(next()) * n;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Rng::exponential(double mean) noexcept { return -mean * std::log1p(-uniform()); }

double Rng::normal() noexcept {
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double Rng::lognormal(double mu, double sigma) noexcept { return std::exp(mu + sigma * normal()); }

double Rng::gamma(double shape, double scale) noexcept {
  if (shape < 1.0) return gamma(shape + 1.0, scale) * std::pow(1.0 - uniform(), 1.0 / shape);
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double v = std::pow(1.0 + c * x, 3);
    if (v <= 0.0) continue;
    const double u = 1.0 - uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

Rng Rng::split(std::uint64_t label) const noexcept { return Rng(mix64(s_[0] ^ mix64(label ^ s_[3]))); }

}  // namespace signalbox
