// How much a request matters. Ordered: sheddable < standard < critical.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace signalbox {

enum class Criticality : std::uint8_t {
  sheddable,  ///< refused first
  standard,
  critical,  ///< refused last
};

inline constexpr std::size_t criticality_count = 3;
inline constexpr std::array<Criticality, criticality_count> all_criticalities{
    Criticality::sheddable, Criticality::standard, Criticality::critical};

constexpr std::string_view to_string(Criticality criticality) {
  switch (criticality) {
    case Criticality::sheddable: return "sheddable";
    case Criticality::standard: return "standard";
    case Criticality::critical: return "critical";
  }
  return "sheddable";
}

/// The criticality of this exact, lower-case name.
constexpr std::optional<Criticality> parse_criticality(std::string_view name) {
  for (const Criticality criticality : all_criticalities)
    if (name == to_string(criticality)) return criticality;
  return std::nullopt;
}

}  // namespace signalbox
