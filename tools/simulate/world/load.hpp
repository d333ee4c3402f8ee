// Draws the requests of one load. Each has its own generator, so that one load does not change another's requests.
#pragma once

#include <optional>

#include "messages/base/rng.hpp"
#include "tools/simulate/world/scenario.hpp"

namespace signalbox::simulate {

struct Arrival {
  Instant at;
  Content prompt;
  std::uint32_t output_tokens = 0;
};

class LoadSource {
 public:
  /// `load` outlives it.
  LoadSource(const Load& load, Rng rng) : load_(load), rng_(rng) {}

  /// The next request after `now` at the factor in force. A Poisson process forgets: asking again after the factor
  /// changed is right. Nothing: no more come.
  std::optional<Instant> next_after(Instant now);
  /// The request that comes at the instant that next_after() told.
  Arrival take(Instant at);
  void set_factor(double factor) { factor_ = factor; }

 private:
  std::uint32_t draw(const Length& length);

  const Load& load_;
  Rng rng_;
  double factor_ = 1;
  std::size_t row_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace signalbox::simulate
