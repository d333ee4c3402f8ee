#include "actors/engine_proxy/machine/life.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "messages/base/rng.hpp"

namespace signalbox::engine_proxy {

Life::Life(const std::string& kept, Incarnation fresh) : incarnation_(fresh) {
  unsigned long long counter = 0, random = 0;
  double start = -1;
  if (std::sscanf(kept.c_str(), "%llu %llu %lf", &counter, &random, &start) != 3) return;
  incarnation_ = {counter, random};
  seen_ = true;
  if (start >= 0) start_time_s_ = start;
}

bool Life::another(const Reading& reading) const {
  if (start_time_s_ && reading.start_time_s) return *start_time_s_ != *reading.start_time_s;
  const auto fell = [](std::optional<double> before, std::optional<double> after) {
    return before && after && *after < *before;
  };
  return fell(prompt_tokens_, reading.prompt_tokens_total) ||
         fell(output_tokens_, reading.output_tokens_total) || fell(requests_, reading.requests_total);
}

bool Life::observe(const Reading& reading) {
  const bool changed = seen_ && another(reading);
  if (changed) incarnation_ = {incarnation_.counter + 1, mix64(incarnation_.random)};
  const bool first = !seen_;
  seen_ = true;
  start_time_s_ = reading.start_time_s ? reading.start_time_s : start_time_s_;
  prompt_tokens_ = reading.prompt_tokens_total;
  output_tokens_ = reading.output_tokens_total;
  requests_ = reading.requests_total;
  return changed || first;
}

std::string Life::text() const {
  return fmt::format("{} {} {:.17g}\n", incarnation_.counter, incarnation_.random,
                     start_time_s_.value_or(-1));
}

}  // namespace signalbox::engine_proxy
