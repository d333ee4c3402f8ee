#include "messages/base/duration_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace signalbox {
namespace {

struct Unit {
  std::string_view name;
  double micros;
};
constexpr std::array<Unit, 5> units{{{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}}};
constexpr double most_micros = 10 * 365.25 * 86'400e6;

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, micros] : units) {
    if (error != std::errc{} || unit != name) continue;
    const double total = std::round(value * micros);
    if (!(total >= 0 && total <= most_micros)) break;
    return std::chrono::microseconds(static_cast<std::int64_t>(total));
  }
  return invalid(fmt::format("'{}' is not a duration", text.substr(0, 40)), {},
                 "write a number with us, ms, s, min or h, such as \"250ms\"");
}

std::string duration_text(Duration duration) {
  const auto micros = std::chrono::round<std::chrono::microseconds>(duration).count();
  if (micros % 1'000'000 == 0) return fmt::format("{}s", micros / 1'000'000);
  if (micros % 1'000 == 0) return fmt::format("{}ms", micros / 1'000);
  return fmt::format("{}us", micros);
}

}  // namespace signalbox
