#include "cluster-config/policy/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace signalbox::policy {
namespace {

struct Unit {
  std::string_view name;
  Dimension dimension;
  double
      scale;  // to the base unit, times ten to this power, which is applied to the text: 7% is the double nearest 0.07
  int exponent;
};
constexpr std::array<Unit, 9> units{{
    {"%", Dimension::share, 1, -2},
    {"us", Dimension::time, 1, -6},
    {"ms", Dimension::time, 1, -3},
    {"s", Dimension::time, 1, 0},
    {"min", Dimension::time, 60, 0},
    {"h", Dimension::time, 3600, 0},
    {"tok", Dimension::tokens, 1, 0},
    {"tok/s", Dimension::rate, 1, 0},
    {"", Dimension::factor, 1, 0},
}};

const Unit* find_unit(std::string_view name) {
  for (const Unit& unit : units)
    if (unit.name == name) return &unit;
  return nullptr;
}

double decimal(std::string_view digits, int exponent) {
  const std::string text = fmt::format("{}e{}", digits, exponent);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_whole(double value) { return value == std::floor(value) && value < 9e15; }

/// The fewest decimals of value * 10^shift that read back as `value`.
std::string shortest(double value, int shift) {
  std::string text;
  for (int decimals = 0; decimals <= 20; ++decimals) {
    text = fmt::format("{:.{}f}", value * std::pow(10, shift), decimals);
    if (decimal(text, -shift) == value) break;
  }
  return text;
}

std::string write_time(double seconds) {
  const double micros = std::round(seconds * 1e6);
  if (std::fmod(micros, 1e6) == 0) return fmt::format("{:.0f}s", micros / 1e6);
  if (std::fmod(micros, 1e3) == 0) return fmt::format("{:.0f}ms", micros / 1e3);
  return fmt::format("{:.0f}us", micros);
}

}  // namespace

std::string_view describe(Dimension dimension) {
  switch (dimension) {
    case Dimension::share: return "a share, such as 20%";
    case Dimension::factor: return "a number without a unit, such as 0.5";
    case Dimension::count: return "a whole number, such as 64";
    case Dimension::time: return "a time, such as 250ms, 2s or 5min";
    case Dimension::tokens: return "a number of tokens, such as 8000 tok";
    case Dimension::rate: return "a rate, such as 1200 tok/s";
  }
  return "";
}

bool is_unit(std::string_view text) { return !text.empty() && find_unit(text) != nullptr; }

Result<double> measure(std::string_view digits, std::string_view unit_name, Dimension dimension) {
  const Unit* unit = find_unit(unit_name);
  if (!unit)
    return invalid(fmt::format("'{}' is not a unit", unit_name), {}, "units: % us ms s min h tok tok/s");
  const bool bare_count = dimension == Dimension::count && unit->dimension == Dimension::factor;
  if (unit->dimension != dimension && !bare_count)
    return invalid(fmt::format("expected {}, found '{}{}'", describe(dimension), digits, unit_name));
  const double value = decimal(digits, unit->exponent) * unit->scale;
  const bool whole = dimension == Dimension::count || dimension == Dimension::tokens;
  if (!std::isfinite(value) || (whole && !is_whole(value)))
    return invalid(fmt::format("expected {}, found '{}'", describe(dimension), digits));
  return value;
}

std::string write(double value, Dimension dimension) {
  switch (dimension) {
    case Dimension::share: return shortest(value, 2) + "%";
    case Dimension::factor: return shortest(value, 0);
    case Dimension::count: return fmt::format("{:.0f}", value);
    case Dimension::time: return write_time(value);
    case Dimension::tokens: return fmt::format("{:.0f} tok", value);
    case Dimension::rate: return shortest(value, 0) + " tok/s";
  }
  return {};
}

std::optional<Version> read_version(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  auto part = std::from_chars(text.data(), end, version.major);
  if (part.ec == std::errc{} && part.ptr != end && *part.ptr == '.')
    part = std::from_chars(part.ptr + 1, end, version.minor);
  if (part.ec != std::errc{} || part.ptr != end) return std::nullopt;
  return version;
}

std::string write(Version version) { return fmt::format("{}.{}", version.major, version.minor); }

}  // namespace signalbox::policy
