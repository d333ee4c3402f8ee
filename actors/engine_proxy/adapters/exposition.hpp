// Prometheus' text exposition format, as much of it as engines use: `name{labels} value [timestamp]` lines.
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"

namespace signalbox::engine_proxy {

inline constexpr std::size_t max_exposition_bytes = 8u << 20;
inline constexpr std::size_t max_samples = 50'000;

/// One series' value. Views into the parsed text.
struct Sample {
  std::string_view name;
  std::string_view labels;  ///< between the braces, unparsed; may be empty
  double value = 0;

  /// The value of a label, escapes left as they are; nothing if the series does not have it.
  std::optional<std::string_view> label(std::string_view key) const;
};

/// The samples of one reading, by name. The text must outlive it.
class Exposition {
 public:
  /// invalid (with the line) for what is no exposition; too_large over the bounds. Non-finite values are left out.
  static Result<Exposition> parse(std::string_view text);

  /// All series of that name, in no particular order.
  std::vector<Sample> find(std::string_view name) const;
  /// Over all series of that name; nothing without one.
  std::optional<double> sum(std::string_view name) const;
  std::optional<double> mean(std::string_view name) const;
  std::optional<double> least(std::string_view name) const;
  bool empty() const { return samples_.empty(); }

 private:
  std::vector<Sample> samples_;  ///< sorted by name
};

}  // namespace signalbox::engine_proxy
