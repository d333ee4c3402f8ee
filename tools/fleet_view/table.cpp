#include "tools/fleet_view/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "messages/base/json_text.hpp"
#include "messages/base/nearest.hpp"

namespace signalbox::fleet_view {
namespace {

std::string text_of(const Cell& value, int decimals) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.{}f}", *number, decimals);
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty() ? "-" : *text;
  return "-";
}

std::string json_of(const Cell& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value))
    return std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  if (const auto* text = std::get_if<std::string>(&value)) return json_string(*text);
  return "null";
}

bool is_number(const Cell& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

constexpr std::size_t gap = 2;
/// A text is cut to this at the least.
constexpr std::size_t least_text = 12;

/// A table as text, before it is laid out.
struct Layout {
  std::vector<std::size_t> columns;  ///< shown, of the table's
  std::vector<std::size_t> widths;   ///< by column of the table
  std::vector<bool> right;
  std::vector<std::vector<std::string>> lines;

  std::size_t width() const {
    std::size_t out = 0;
    for (const std::size_t c : columns) out += widths[c] + gap;
    return out > 0 ? out - gap : 0;
  }
};

Layout layout_of(const Table& table) {
  const std::size_t columns = table.columns.size();
  Layout out{{}, std::vector<std::size_t>(columns), std::vector<bool>(columns, false), {}};
  for (std::size_t c = 0; c < columns; ++c)
    out.columns.push_back(c), out.widths[c] = table.columns[c].name.size();
  for (const auto& row : table.rows) {
    auto& line = out.lines.emplace_back();
    for (std::size_t c = 0; c < columns; ++c) {
      line.push_back(text_of(row[c], table.columns[c].decimals));
      out.widths[c] = std::max(out.widths[c], line[c].size());
      out.right[c] = out.right[c] || is_number(row[c]);
    }
  }
  return out;
}

/// Leaves out columns by rank until the rest fits, and puts those back that fit after all; returns their names.
std::string leave_out(const Table& table, Layout& layout, std::size_t width) {
  std::vector<std::size_t> gone;
  while (layout.width() > width) {
    auto most = layout.columns.end();
    for (auto at = layout.columns.begin(); at != layout.columns.end(); ++at)
      if (table.columns[*at].rank > 0 &&
          (most == layout.columns.end() || table.columns[*at].rank >= table.columns[*most].rank))
        most = at;
    if (most == layout.columns.end()) break;
    gone.push_back(*most);
    layout.columns.erase(most);
  }
  for (std::size_t i = gone.size(); i-- > 0;) {
    if (layout.width() + gap + layout.widths[gone[i]] > width) continue;
    layout.columns.insert(std::lower_bound(layout.columns.begin(), layout.columns.end(), gone[i]), gone[i]);
    gone.erase(gone.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::string out;
  for (const std::size_t c : gone) out += fmt::format("{}{}", out.empty() ? "" : ", ", table.columns[c].name);
  return out;
}

/// Cuts the widest text column until the rest fits.
void cut_texts(const Table& table, Layout& layout, std::size_t width) {
  while (layout.width() > width) {
    std::size_t widest = table.columns.size();
    for (const std::size_t c : layout.columns)
      if (!layout.right[c] && (widest == table.columns.size() || layout.widths[c] > layout.widths[widest]))
        widest = c;
    if (widest == table.columns.size()) return;
    const std::size_t least = std::max(least_text, table.columns[widest].name.size());
    if (layout.widths[widest] <= least) return;
    const std::size_t over = layout.width() - width;
    layout.widths[widest] = std::max(least, layout.widths[widest] - std::min(layout.widths[widest], over));
  }
}

void append_lines(std::string& out, const Table& table, std::size_t width) {
  Layout layout = layout_of(table);
  std::string left_out;
  if (width > 0) {
    left_out = leave_out(table, layout, width);
    cut_texts(table, layout, width);
  }
  const auto append = [&](std::size_t c, std::string_view whole) {
    const std::size_t room = layout.widths[c];
    std::string text(whole.substr(0, room));
    if (whole.size() > room && room > 3) text.replace(room - 3, 3, "...");
    if (c != layout.columns.front()) out += "  ";
    if (layout.right[c])
      out += fmt::format("{:>{}}", text, room);
    else
      out += c == layout.columns.back() ? text : fmt::format("{:<{}}", text, room);
  };
  for (const std::size_t c : layout.columns) append(c, table.columns[c].name);
  out += '\n';
  for (const auto& line : layout.lines) {
    for (const std::size_t c : layout.columns) append(c, line[c]);
    out += '\n';
  }
  if (left_out.empty()) return;
  left_out = fmt::format("(no room for {})", left_out);
  if (left_out.size() > width) left_out.resize(std::max<std::size_t>(4, width) - 4), left_out += "...)";
  out += left_out + '\n';
}

/// The columns of that name, one a table; npos where a table has none.
constexpr std::size_t npos = static_cast<std::size_t>(-1);
std::size_t column_of(const Table& table, std::string_view name) {
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].name == name) return c;
  return npos;
}

Status check_column(const std::vector<Table>& tables, std::string_view name, std::string_view option) {
  std::vector<std::string_view> names;
  for (const Table& table : tables)
    for (const Column& column : table.columns) names.push_back(column.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return fail(ErrorKind::not_found, fmt::format("no column is called '{}'", name), std::string(option),
              name_hint(name, names));
}

/// Numbers before texts, what is not known last.
std::pair<int, double> rank_of(const Cell& cell) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) return {0, static_cast<double>(*number)};
  if (const auto* number = std::get_if<double>(&cell)) return {0, *number};
  if (const auto* flag = std::get_if<bool>(&cell)) return {0, *flag ? 1.0 : 0.0};
  return {std::holds_alternative<std::string>(cell) ? 1 : 2, 0.0};
}

bool less(const Cell& a, const Cell& b) {
  const auto *x = std::get_if<std::string>(&a), *y = std::get_if<std::string>(&b);
  if (x != nullptr && y != nullptr) return *x < *y;
  return rank_of(a) < rank_of(b);
}

}  // namespace

std::string as_text(const std::vector<Table>& tables, std::size_t width) {
  std::string out;
  for (const Table& table : tables) {
    if (!out.empty()) out += '\n';
    out += fmt::format("{}\n", table.name);
    if (table.rows.empty())
      out += "none\n";
    else
      append_lines(out, table, width);
  }
  return out;
}

std::string as_json(const std::vector<Table>& tables) {
  std::string out = "{";
  for (const Table& table : tables) {
    out += fmt::format("{}{}: [", out.size() > 1 ? ", " : "", json_string(table.name));
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      out += r > 0 ? ", {" : "{";
      for (std::size_t c = 0; c < table.columns.size(); ++c)
        out += fmt::format("{}{}: {}", c > 0 ? ", " : "", json_string(table.columns[c].name),
                           json_of(table.rows[r][c]));
      out += '}';
    }
    out += ']';
  }
  return out + "}\n";
}

Status sort_by(std::vector<Table>& tables, std::string_view column) {
  const bool down = column.starts_with('-');
  if (down) column.remove_prefix(1);
  if (const Status known = check_column(tables, column, "--sort"); !known) return known;
  for (Table& table : tables) {
    const std::size_t c = column_of(table, column);
    if (c == npos) continue;
    std::stable_sort(table.rows.begin(), table.rows.end(), [&](const auto& a, const auto& b) {
      const bool known_a = !std::holds_alternative<std::monostate>(a[c]);
      const bool known_b = !std::holds_alternative<std::monostate>(b[c]);
      if (known_a != known_b) return known_a;
      return down ? less(b[c], a[c]) : less(a[c], b[c]);
    });
  }
  return {};
}

Status keep_rows(std::vector<Table>& tables, std::string_view condition) {
  const std::size_t equals = condition.find('=');
  const bool negated = equals != std::string_view::npos && equals > 0 && condition[equals - 1] == '!';
  std::string_view column, wanted = condition;
  if (equals != std::string_view::npos) {
    column = condition.substr(0, equals - (negated ? 1 : 0));
    wanted = condition.substr(equals + 1);
    if (const Status known = check_column(tables, column, "--filter"); !known) return known;
  }
  for (Table& table : tables) {
    const std::size_t only = column.empty() ? npos : column_of(table, column);
    if (!column.empty() && only == npos) continue;
    std::erase_if(table.rows, [&](const std::vector<Cell>& row) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        const std::string text = text_of(row[c], table.columns[c].decimals);
        if (only == npos ? text.find(wanted) != std::string::npos : c == only && (text == wanted) != negated)
          return false;
      }
      return true;
    });
  }
  return {};
}

}  // namespace signalbox::fleet_view
