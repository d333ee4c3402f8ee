// Seeded randomness with our own distributions, so that a seed gives the same draws with every compiler and
// library.
#pragma once

#include <cstdint>

namespace signalbox {

/// xoshiro256++ (Blackman and Vigna, 2019), seeded through splitmix64. Not for secrets.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) noexcept;

  /// 64 uniform bits.
  std::uint64_t next() noexcept {
    const std::uint64_t result = rotl(s_[0] + s_[3], 23) + s_[0];
    const std::uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = rotl(s_[3], 45);
    return result;
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [lo, hi).
  double uniform(double lo, double hi) noexcept { return lo + (hi - lo) * uniform(); }
  /// Uniform in 0..n-1, unbiased; n > 0 (Lemire, 2019).
  std::uint64_t below(std::uint64_t n) noexcept;
  /// True with probability p.
  bool chance(double p) noexcept { return uniform() < p; }
  /// Exponential with this mean.
  double exponential(double mean) noexcept;
  /// Standard normal (Box-Muller; one value per call, so that the stream does not depend on call parity).
  double normal() noexcept;
  /// Log-normal: exp(mu + sigma * normal()).
  double lognormal(double mu, double sigma) noexcept;
  /// Gamma with shape k > 0 and scale theta (Marsaglia and Tsang, 2000).
  double gamma(double shape, double scale) noexcept;
  /// An independent generator; the same (state, label) gives the same child.
  Rng split(std::uint64_t label) const noexcept;

 private:
  static std::uint64_t rotl(std::uint64_t x, int k) noexcept { return (x << k) | (x >> (64 - k)); }
  std::uint64_t s_[4];
};

/// The finaliser of splitmix64: a bijective scramble of 64 bits.
constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace signalbox
