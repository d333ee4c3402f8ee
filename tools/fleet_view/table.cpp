#include "tools/fleet_view/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

void append_lines(std::string& out, const Table& table) {
  const std::size_t columns = table.columns.size();
  std::vector<std::size_t> widths(columns);
  std::vector<bool> right(columns, false);
  std::vector<std::vector<std::string>> lines;
  for (std::size_t c = 0; c < columns; ++c) widths[c] = table.columns[c].name.size();
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (std::size_t c = 0; c < columns; ++c) {
      line.push_back(text_of(row[c], table.columns[c].decimals));
      widths[c] = std::max(widths[c], line[c].size());
      right[c] = right[c] || is_number(row[c]);
    }
  }
  const auto append = [&](std::size_t c, std::string_view text) {
    if (c > 0) out += "  ";
    if (right[c])
      out += fmt::format("{:>{}}", text, widths[c]);
    else
      out += c + 1 == columns ? std::string(text) : fmt::format("{:<{}}", text, widths[c]);
  };
  for (std::size_t c = 0; c < columns; ++c) append(c, table.columns[c].name);
  out += '\n';
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < columns; ++c) append(c, line[c]);
    out += '\n';
  }
}

}  // namespace

std::string as_text(const std::vector<Table>& tables) {
  std::string out;
  for (const Table& table : tables) {
    if (!out.empty()) out += '\n';
    out += fmt::format("{}\n", table.name);
    if (table.rows.empty())
      out += "none\n";
    else
      append_lines(out, table);
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

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

}  // namespace signalbox::fleet_view
