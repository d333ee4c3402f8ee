#include "actors/engine_proxy/machine/life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "messages/base/rng.hpp"

namespace signalbox::engine_proxy {

namespace {

/// Takes the next number of a text of numbers between single spaces.
template <class N>
bool take(std::string_view& text, N& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{}) return false;
  text.remove_prefix(std::min<std::size_t>(static_cast<std::size_t>(end - text.data()) + 1, text.size()));
  return true;
}

}  // namespace

Life::Life(const std::string& kept, Incarnation fresh) : incarnation_(fresh) {
  std::string_view text = kept;
  Incarnation before;
  double start = -1;
  if (!take(text, before.counter) || !take(text, before.random) || !take(text, start)) return;
  incarnation_ = before;
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
