#include "tools/simulate/world/load.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::simulate {

std::optional<Instant> LoadSource::next_after(Instant now) {
  if (!load_.trace.empty()) {
    if (row_ == load_.trace.size()) return std::nullopt;
    return instant_at(load_.trace[row_].at);
  }
  const double rate = load_.rate_per_s * factor_;
  if (rate <= 0) return std::nullopt;
  return now + from_seconds(rng_.exponential(1 / rate));
}

Arrival LoadSource::take(Instant at) {
  if (!load_.trace.empty()) {
    const TraceRow& row = load_.trace[row_++];
    return {at, row.prompt, row.output_tokens};
  }
  Arrival arrival{.at = at, .prompt = {}, .output_tokens = 0};
  // Ids of shared beginnings depend on tenant and model only: two clusters' loads may share them.
  if (load_.prefixes > 0 && load_.prefix_tokens > 0)
    arrival.prompt.push_back({1 + rng_.below(load_.prefixes), load_.prefix_tokens});
  arrival.prompt.push_back({mix64(rng_.next() ^ ++taken_), draw(load_.prompt)});
  arrival.output_tokens = draw(load_.output);
  return arrival;
}

std::uint32_t LoadSource::draw(const Length& length) {
  // exp(mu + sigma^2 / 2) is the mean of a log-normal.
  const double mu = std::log(std::max(1.0, length.mean_tokens)) - length.sigma * length.sigma / 2;
  const double tokens = length.sigma > 0 ? rng_.lognormal(mu, length.sigma) : length.mean_tokens;
  return static_cast<std::uint32_t>(std::clamp(std::round(tokens), 1.0, 1e6));
}

}  // namespace signalbox::simulate
