// Which bytes may stand where in HTTP's grammar (RFC 9110, 5.6; RFC 3986).
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace signalbox::http {

constexpr std::array<bool, 256> characters_of(std::string_view extra) {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (const char c : extra) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> value_characters() {
  std::array<bool, 256> table{};
  for (std::size_t c = 0x20; c < 256; ++c) table[c] = c != 0x7f;
  table['\t'] = true;
  return table;
}

/// Of names of fields and methods.
inline constexpr auto token_table = characters_of("!#$%&'*+-.^_`|~");
/// Of values of fields: everything but control characters.
inline constexpr auto value_table = value_characters();
/// Of a Host field: a name or an address, and a port. Without the comma, which would make a list of it.
inline constexpr auto host_table = characters_of("-._~%!$&'()*+;=:[]");

constexpr bool is_token(char c) { return token_table[static_cast<unsigned char>(c)]; }
constexpr bool is_value(char c) { return value_table[static_cast<unsigned char>(c)]; }
inline bool all_of(std::string_view text, const std::array<bool, 256>& table) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return table[static_cast<unsigned char>(c)]; });
}

}  // namespace signalbox::http
