#include "actors/cluster_router/http/head.hpp"

#include <algorithm>
#include <cstring>

#include "actors/cluster_router/http/characters.hpp"

namespace signalbox::http {
namespace {

bool is_token(std::string_view text) { return !text.empty() && all_of(text, token_table); }
bool is_value(std::string_view text) { return all_of(text, value_table); }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool has_bare_newline(std::string_view bytes, std::size_t from) {
  for (std::size_t at = from;;) {
    at = bytes.find('\n', at);
    if (at == std::string_view::npos) return false;
    if (at == 0 || bytes[at - 1] != '\r') return true;
    ++at;
  }
}

/// Finds the end of the head: `consumed` then counts its bytes with the empty line.
Parsed find_end(std::string_view bytes, std::size_t start, std::size_t seen, const HeadLimits& limits) {
  const std::size_t from = std::max(start, seen > 3 ? seen - 3 : 0);
  const std::size_t end = bytes.find("\r\n\r\n", from);
  const std::string_view head = end == std::string_view::npos ? bytes : bytes.substr(0, end + 4);
  if (has_bare_newline(head, from)) return {0, Fault::bare_newline};
  if (head.size() > limits.max_bytes) {
    const bool in_first_line =
        bytes.substr(0, limits.max_target).find("\r\n", start) == std::string_view::npos;
    return {0, in_first_line ? Fault::target_too_long : Fault::head_too_large};
  }
  return {end == std::string_view::npos ? 0 : end + 4, Fault::none};
}

Fault parse_fields(std::string_view lines, const HeadLimits& limits, Fields& out) {
  constexpr std::size_t usual_fields = 16;
  out.clear();
  out.reserve(usual_fields);
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    if (line.empty()) return Fault::none;
    if (line.front() == ' ' || line.front() == '\t') return Fault::folded_field;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return Fault::bad_field;
    const std::string_view value = trim(line.substr(colon + 1));
    if (!is_value(value)) return Fault::bad_field;
    if (out.size() == limits.max_fields) return Fault::too_many_fields;
    out.push_back({line.substr(0, colon), value});
  }
  return Fault::none;
}

bool parse_length(std::string_view text, std::uint64_t& out) {
  if (text.empty() || text.size() > 18) return false;
  out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}

/// What the fields say about the connection and the body, before the rules of a request or a response.
struct Control {
  const Field* length = nullptr;
  const Field* coding = nullptr;
  const Field* host = nullptr;
  int hosts = 0;
  bool close = false;
  bool keep_alive = false;
  const Field* expect = nullptr;
};

Fault read_control(const Fields& fields, Control& out) {
  for (const Field& field : fields) {
    // The lengths tell nearly all other names apart before a byte is compared.
    switch (field.name.size()) {
      case 4:
        if (same_name(field.name, "host")) ++out.hosts, out.host = &field;
        break;
      case 6:
        if (same_name(field.name, "expect")) out.expect = &field;
        break;
      case 10:
        if (same_name(field.name, "connection")) {
          out.close = out.close || has_token(field.value, "close");
          out.keep_alive = out.keep_alive || has_token(field.value, "keep-alive");
        }
        break;
      case 14:
        if (same_name(field.name, "content-length")) {
          if (out.length != nullptr) return Fault::bad_length;
          out.length = &field;
        }
        break;
      case 17:
        if (same_name(field.name, "transfer-encoding")) {
          if (out.coding != nullptr) return Fault::unknown_coding;
          out.coding = &field;
        }
        break;
      default: break;
    }
  }
  return Fault::none;
}

Fault read_framing(const Control& control, int minor_version, Framing absent, Framing& framing,
                   std::uint64_t& length) {
  framing = absent;
  length = 0;
  if (control.coding != nullptr) {
    if (control.length != nullptr || minor_version == 0) return Fault::conflicting_framing;
    if (!same_name(control.coding->value, "chunked")) return Fault::unknown_coding;
    framing = Framing::chunked;
  } else if (control.length != nullptr) {
    if (!parse_length(control.length->value, length)) return Fault::bad_length;
    framing = Framing::length;
  }
  return Fault::none;
}

bool stays_open(const Control& control, int minor_version) {
  return !control.close && (minor_version == 1 || control.keep_alive);
}

/// Reduces "http://authority/path" to "/path"; the authority stays with the Host field.
Fault read_target(std::string_view text, std::string_view method, std::string_view& out) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return Fault::bad_target;
  if (text.size() > 7 &&
      (same_name(text.substr(0, 7), "http://") || same_name(text.substr(0, 8), "https://"))) {
    const std::size_t authority = text.find("//") + 2;
    const std::size_t slash = text.find('/', authority);
    text = slash == std::string_view::npos ? text.substr(authority - 1, 1) : text.substr(slash);
  }
  if (text.empty() || (text.front() != '/' && !(text == "*" && method == "OPTIONS")))
    return Fault::bad_target;
  out = text;
  return Fault::none;
}

Fault read_version(std::string_view text, int& minor) {
  if (text.size() != 8 || text.substr(0, 5) != "HTTP/" || text[6] != '.') return Fault::bad_start_line;
  if (text[5] != '1' || text[7] < '0' || text[7] > '9') return Fault::bad_version;
  minor = text[7] == '0' ? 0 : 1;
  return Fault::none;
}

Fault read_request_line(std::string_view line, const HeadLimits& limits, RequestHead& out) {
  if (line.size() > limits.max_target) return Fault::target_too_long;
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return Fault::bad_start_line;
  out.method = line.substr(0, first);
  if (!is_token(out.method) || out.method.size() > 32) return Fault::bad_start_line;
  if (const Fault fault = read_version(line.substr(last + 1), out.minor_version); fault != Fault::none)
    return fault;
  return read_target(line.substr(first + 1, last - first - 1), out.method, out.target);
}

Fault read_status_line(std::string_view line, ResponseHead& out) {
  if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' '))
    return Fault::bad_start_line;
  if (const Fault fault = read_version(line.substr(0, 8), out.minor_version); fault != Fault::none)
    return fault;
  out.status = 0;
  for (const char c : line.substr(9, 3)) {
    if (c < '0' || c > '9') return Fault::bad_start_line;
    out.status = out.status * 10 + (c - '0');
  }
  return out.status < 100 || !is_value(line) ? Fault::bad_start_line : Fault::none;
}

Fault read_request_rules(RequestHead& out) {
  Control control;
  if (const Fault fault = read_control(out.fields, control); fault != Fault::none) return fault;
  if (control.hosts > 1 || (control.hosts == 0 && out.minor_version == 1)) return Fault::bad_host;
  if (control.host != nullptr && !all_of(control.host->value, host_table)) return Fault::bad_host;
  out.keep_alive = stays_open(control, out.minor_version);
  out.expects_continue = control.expect != nullptr && out.minor_version == 1;
  if (control.expect != nullptr && !same_name(control.expect->value, "100-continue"))
    return Fault::unknown_expectation;
  return read_framing(control, out.minor_version, Framing::none, out.framing, out.length);
}

Fault read_response_rules(bool to_head, ResponseHead& out) {
  Control control;
  if (const Fault fault = read_control(out.fields, control); fault != Fault::none) return fault;
  out.keep_alive = stays_open(control, out.minor_version);
  const Fault fault = read_framing(control, out.minor_version, Framing::until_close, out.framing, out.length);
  if (fault != Fault::none) return fault;
  if (to_head || out.status < 200 || out.status == 204 || out.status == 304) out.framing = Framing::none;
  return Fault::none;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  return true;
}

std::optional<std::string_view> find(const Fields& fields, std::string_view name) {
  for (const Field& field : fields)
    if (same_name(field.name, name)) return field.value;
  return std::nullopt;
}

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (same_name(trim(list.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

void rebase(RequestHead& head, const char* from, const char* to) {
  if (from == to) return;
  const auto moved = [&](std::string_view view) {
    return std::string_view(
        to + (reinterpret_cast<std::uintptr_t>(view.data()) - reinterpret_cast<std::uintptr_t>(from)),
        view.size());
  };
  head.method = moved(head.method);
  head.target = moved(head.target);
  for (Field& field : head.fields) field = {moved(field.name), moved(field.value)};
}

Parsed parse_request(std::string_view bytes, std::size_t seen, const HeadLimits& limits, RequestHead& out) {
  const std::size_t start = bytes.substr(0, 2) == "\r\n" ? 2 : 0;
  const Parsed end = find_end(bytes, start, seen, limits);
  if (end.consumed == 0) return end;
  const std::string_view head = bytes.substr(start, end.consumed - start);
  const std::size_t line = head.find("\r\n");
  Fault fault = read_request_line(head.substr(0, line), limits, out);
  if (fault == Fault::none) fault = parse_fields(head.substr(line + 2), limits, out.fields);
  if (fault == Fault::none) fault = read_request_rules(out);
  return fault == Fault::none ? end : Parsed{0, fault};
}

Parsed parse_response(std::string_view bytes, std::size_t seen, const HeadLimits& limits, bool to_head,
                      ResponseHead& out) {
  const Parsed end = find_end(bytes, 0, seen, limits);
  if (end.consumed == 0) return end;
  const std::string_view head = bytes.substr(0, end.consumed);
  const std::size_t line = head.find("\r\n");
  Fault fault = read_status_line(head.substr(0, line), out);
  if (fault == Fault::none) fault = parse_fields(head.substr(line + 2), limits, out.fields);
  if (fault == Fault::none) fault = read_response_rules(to_head, out);
  return fault == Fault::none ? end : Parsed{0, fault};
}

bool is_hop_by_hop(std::string_view name) {
  switch (name.size()) {
    case 2: return same_name(name, "te");
    case 7: return same_name(name, "trailer") || same_name(name, "upgrade");
    case 10: return same_name(name, "connection") || same_name(name, "keep-alive");
    case 16: return same_name(name, "proxy-connection");
    case 17: return same_name(name, "transfer-encoding");
    case 18: return same_name(name, "proxy-authenticate");
    case 19: return same_name(name, "proxy-authorization");
    default: return false;
  }
}

}  // namespace signalbox::http
