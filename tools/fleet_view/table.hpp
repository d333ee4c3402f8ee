// A table as data: printed for people, or as JSON for scripts, from one description.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace signalbox::fleet_view {

/// A value of a table. monostate is "not known": "-" in text, null in JSON.
using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

inline Cell cell(double value) { return value; }
inline Cell cell(std::string_view text) { return std::string(text); }
inline Cell count(std::uint64_t value) { return static_cast<std::int64_t>(value); }
inline Cell flag(bool value) { return value; }
inline Cell maybe(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

struct Column {
  std::string_view name;  ///< also the key in JSON; ends in its unit
  int decimals = 0;       ///< of numbers in text; JSON has them whole
};

struct Table {
  std::string name;  ///< the key in JSON
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// The tables one under the other, numbers to the right; an empty one says "none".
std::string as_text(const std::vector<Table>& tables);
/// {"name": [{"column": value, ...}, ...], ...} and a newline.
std::string as_json(const std::vector<Table>& tables);

/// Text as a JSON string, with its quotes.
std::string json_string(std::string_view text);

}  // namespace signalbox::fleet_view
