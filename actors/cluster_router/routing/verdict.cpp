#include "actors/cluster_router/routing/verdict.hpp"

#include <array>

namespace signalbox::routing {

namespace {

constexpr std::string_view digits = "0123456789abcdefghjkmnpqrstvwxyz";  // Crockford: no i, l, o, u
constexpr std::size_t life_digits = 8;
constexpr std::uint64_t life_mask = (1ULL << (5 * life_digits)) - 1;
constexpr std::size_t most_count_digits = 13;

/// Writes the digits so that they end before `end`; returns where they begin.
char* write_base32(char* end, std::uint64_t value, std::size_t least_digits) {
  char* begin = end;
  for (; value != 0 || static_cast<std::size_t>(end - begin) < least_digits; value >>= 5)
    *--begin = digits[value & 31];
  return begin;
}

std::optional<std::uint64_t> parse_base32(std::string_view text) {
  if (text.empty() || text.size() > most_count_digits) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos || value >> 59 != 0) return std::nullopt;
    value = value << 5 | digit;
  }
  return value;
}

}  // namespace

std::string to_string(const DecisionId& id) {
  std::array<char, life_digits + 1 + most_count_digits> text;
  char* const end = text.data() + text.size();
  char* begin = write_base32(end, id.count, 1);
  *--begin = '-';
  begin = write_base32(begin, id.life & life_mask, life_digits);
  return {begin, end};
}

std::optional<DecisionId> parse_decision_id(std::string_view text) {
  if (text.size() < life_digits + 2 || text[life_digits] != '-') return std::nullopt;
  const auto life = parse_base32(text.substr(0, life_digits));
  const auto count = parse_base32(text.substr(life_digits + 1));
  if (!life || !count) return std::nullopt;
  return DecisionId{*life, *count};
}

}  // namespace signalbox::routing
