#include "actors/engine_proxy/adapters/exposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace signalbox::engine_proxy {

namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Past the closing brace of a label set; npos if it does not close. Braces within quoted values do not count.
std::size_t end_of_labels(std::string_view line, std::size_t open) {
  bool quoted = false;
  for (std::size_t i = open + 1; i < line.size(); ++i) {
    if (quoted && line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == '}' && !quoted)
      return i;
  }
  return std::string_view::npos;
}

std::optional<Sample> read_sample(std::string_view line) {
  Sample out;
  const auto name_end = line.find_first_of("{ \t");
  if (name_end == std::string_view::npos || name_end == 0) return std::nullopt;
  out.name = line.substr(0, name_end);
  std::size_t at = name_end;
  if (line[at] == '{') {
    const auto close = end_of_labels(line, at);
    if (close == std::string_view::npos) return std::nullopt;
    out.labels = line.substr(at + 1, close - at - 1);
    at = close + 1;
  }
  std::string_view value = trim(line.substr(at));
  value = value.substr(0, value.find_first_of(" \t"));
  if (value.starts_with('+')) value.remove_prefix(1);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out.value);
  if (error != std::errc{} || end != value.data() + value.size() || value.empty()) return std::nullopt;
  return out;
}

}  // namespace

std::optional<std::string_view> Sample::label(std::string_view key) const {
  std::string_view rest = labels;
  while (!rest.empty()) {
    const auto equals = rest.find("=\"");
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view found = trim(rest.substr(0, equals));
    std::size_t end = equals + 2;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    if (end >= rest.size()) return std::nullopt;
    if (found == key) return rest.substr(equals + 2, end - equals - 2);
    rest.remove_prefix(end + 1);
    if (const auto comma = rest.find_first_not_of(", "); comma != std::string_view::npos)
      rest.remove_prefix(comma);
  }
  return std::nullopt;
}

Result<Exposition> Exposition::parse(std::string_view text) {
  if (text.size() > max_exposition_bytes)
    return fail(ErrorKind::too_large,
                fmt::format("{} bytes of metrics, at most {}", text.size(), max_exposition_bytes));
  Exposition out;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const auto sample = read_sample(line);
    if (!sample)
      return invalid(fmt::format("'{}' is no metric", line.substr(0, 60)),
                     fmt::format("line {}", line_number),
                     "check metrics_path: it must serve Prometheus' text format");
    if (out.samples_.size() == max_samples)
      return fail(ErrorKind::too_large, fmt::format("more than {} series", max_samples));
    if (std::isfinite(sample->value)) out.samples_.push_back(*sample);
  }
  std::stable_sort(out.samples_.begin(), out.samples_.end(),
                   [](const Sample& a, const Sample& b) { return a.name < b.name; });
  return out;
}

std::vector<Sample> Exposition::find(std::string_view name) const {
  const auto [first, last] =
      std::equal_range(samples_.begin(), samples_.end(), Sample{name, {}, 0},
                       [](const Sample& a, const Sample& b) { return a.name < b.name; });
  return {first, last};
}

std::optional<double> Exposition::sum(std::string_view name) const {
  const auto found = find(name);
  if (found.empty()) return std::nullopt;
  double total = 0;
  for (const auto& sample : found) total += sample.value;
  return total;
}

std::optional<double> Exposition::mean(std::string_view name) const {
  const auto found = find(name);
  const auto total = sum(name);
  return total ? std::optional(*total / static_cast<double>(found.size())) : std::nullopt;
}

std::optional<double> Exposition::least(std::string_view name) const {
  std::optional<double> out;
  for (const auto& sample : find(name)) out = std::min(out.value_or(sample.value), sample.value);
  return out;
}

}  // namespace signalbox::engine_proxy
