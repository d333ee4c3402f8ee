// A table as data: printed for people, or as JSON for scripts, from one description.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "messages/base/result.hpp"

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
  int rank = 0;           ///< where room is short the highest goes first; 0: never
};

struct Table {
  std::string name;  ///< the key in JSON
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// The tables one under the other, numbers to the right; an empty one says "none". In a `width` (0: any) columns are left
/// out by rank, with a line that says which, and long texts are cut.
std::string as_text(const std::vector<Table>& tables, std::size_t width = 0);
/// {"name": [{"column": value, ...}, ...], ...} and a newline.
std::string as_json(const std::vector<Table>& tables);

/// Sorts the rows of every table that has this column; "-name": the largest first. Errors: not_found with the names that
/// there are.
Status sort_by(std::vector<Table>& tables, std::string_view column);
/// Keeps rows that hold this text in any cell; "column=text" and "column!=text": in this one, whole. Errors: not_found.
Status keep_rows(std::vector<Table>& tables, std::string_view condition);

}  // namespace signalbox::fleet_view
