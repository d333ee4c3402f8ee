// Building heads by appending: on the path of every request, where format strings cost more than all the rest of a head.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace signalbox::http {

template <std::unsigned_integral Number>
void append_number(std::string& out, Number number) {
  std::array<char, 20> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

/// "name: value", with its CR LF.
inline void append_line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

template <std::unsigned_integral Number>
void append_line(std::string& out, std::string_view name, Number value) {
  out.append(name).append(": ");
  append_number(out, value);
  out.append("\r\n");
}

}  // namespace signalbox::http
