#include "tools/recording/header.hpp"

#include <fmt/format.h>

#include <charconv>

#include "messages/schema/catalog.hpp"

namespace signalbox::recording {
namespace {

constexpr std::string_view config_mark = "config\n";

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t tab = line.find('\t');
    out.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return out;
    line.remove_prefix(tab + 1);
  }
}

template <class N>
bool read(std::string_view text, N& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_duration(std::string_view text, Duration& out) {
  std::int64_t count = 0;
  if (!read(text, count)) return false;
  out = Duration(count);
  return true;
}

/// False for a line that says something known in a wrong way; what is not known is left to later versions.
bool read_line(std::string_view line, Header& header) {
  const auto cells = cells_of(line);
  const std::string_view key = cells[0];
  const std::string_view value = cells.size() > 1 ? cells[1] : std::string_view();
  Duration time{};
  if (key == "fleet") return header.fleet = value, true;
  if (key == "filter") return header.filter = value, true;
  if (key == "began_ns") return read_duration(value, time) && (header.began = instant_at(time), true);
  if (key == "wall_ns") return read_duration(value, header.began_wall);
  if (key == "port_base") return read(value, header.port_base);
  if (key != "kind") return true;
  RecordedKind kind;
  if (cells.size() < 4 || !read(cells[1], kind.kind) || !read(cells[2], kind.version)) return false;
  kind.name = cells[3];
  header.kinds.push_back(std::move(kind));
  return true;
}

}  // namespace

std::vector<RecordedKind> kinds_of_this_build() {
  std::vector<RecordedKind> out;
  for (const schema::MessageInfo& info : schema::catalog())
    out.push_back({info.kind, info.version, std::string(info.name)});
  return out;
}

std::string to_text(const Header& header) {
  std::string filter = header.filter;
  for (char& c : filter)
    if (c == '\t' || c == '\n') c = ' ';
  std::string out =
      fmt::format("fleet\t{}\nfilter\t{}\nbegan_ns\t{}\nwall_ns\t{}\nport_base\t{}\n", header.fleet, filter,
                  header.began.time_since_epoch().count(), header.began_wall.count(), header.port_base);
  for (const RecordedKind& kind : header.kinds)
    out += fmt::format("kind\t{}\t{}\t{}\n", kind.kind, kind.version, kind.name);
  out += config_mark;
  return out + header.config;
}

Result<Header> parse_header(std::string_view text) {
  Header out;
  while (!text.empty()) {
    if (text.starts_with(config_mark)) {
      out.config = text.substr(config_mark.size());
      return out;
    }
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!read_line(line, out)) return invalid(fmt::format("the header's line '{}' cannot be read", line));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return invalid("the header ends without a configuration");
}

std::string unknown_to_this_build(const Header& header) {
  std::string out;
  for (const RecordedKind& kind : header.kinds) {
    const schema::MessageInfo* known = schema::find_info(kind.kind);
    const auto note = [&](std::string_view what) {
      out += fmt::format("{}{} {}", out.empty() ? "" : "; ", kind.name, what);
    };
    if (known == nullptr)
      note("is not known to this build and is left out");
    else if (kind.version > known->version)
      note(fmt::format("is of version {}, here {}: later fields are left out", kind.version, known->version));
  }
  return out;
}

}  // namespace signalbox::recording
