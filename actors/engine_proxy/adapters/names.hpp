// Helpers of adapters over Prometheus metrics.
#pragma once

#include <initializer_list>

#include "actors/engine_proxy/adapters/adapter.hpp"
#include "actors/engine_proxy/adapters/exposition.hpp"

namespace signalbox::engine_proxy {

/// Takes facts by the first of several names that is there, and notes that name.
class Facts {
 public:
  Facts(const Exposition& metrics, Reading& reading) : metrics_(metrics), reading_(reading) {}

  std::optional<double> sum(std::initializer_list<std::string_view> names) {
    return first(names, &Exposition::sum);
  }
  std::optional<double> mean(std::initializer_list<std::string_view> names) {
    return first(names, &Exposition::mean);
  }
  std::optional<double> least(std::initializer_list<std::string_view> names) {
    return first(names, &Exposition::least);
  }
  /// The `_sum` and `_count` of a histogram.
  std::optional<Accumulated> histogram(std::initializer_list<std::string_view> names) {
    for (const auto name : names) {
      const auto sum = metrics_.sum(std::string(name) + "_sum");
      const auto count = metrics_.sum(std::string(name) + "_count");
      if (!sum || !count) continue;
      reading_.names.emplace_back(name);
      return Accumulated{*sum, *count};
    }
    return std::nullopt;
  }
  /// A number in a label of an info metric.
  std::optional<double> label(std::string_view name, std::string_view key);

 private:
  std::optional<double> first(std::initializer_list<std::string_view> names,
                              std::optional<double> (Exposition::*take)(std::string_view) const) {
    for (const auto name : names)
      if (const auto value = (metrics_.*take)(name)) {
        reading_.names.emplace_back(name);
        return value;
      }
    return std::nullopt;
  }

  const Exposition& metrics_;
  Reading& reading_;
};

}  // namespace signalbox::engine_proxy
