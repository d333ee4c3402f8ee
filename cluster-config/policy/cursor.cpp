#include "cluster-config/policy/cursor.hpp"

#include <fmt/format.h>

#include "messages/base/nearest.hpp"

namespace signalbox::policy {

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::end: return "the end of the file";
    case TokenKind::quoted: return fmt::format("\"{}\"", token.text);
    default: return fmt::format("'{}{}'", token.text, token.unit);
  }
}

Reported Cursor::error(const Token& token, std::string what, std::string hint) {
  errors_.push_back({token.span, std::move(what), std::move(hint)});
  return {};
}

Reported Cursor::expected(std::string_view noun, std::string hint) {
  return error_here(fmt::format("expected {}, found {}", noun, shown(here())), std::move(hint));
}

Reported Cursor::unknown_word(std::string_view what, std::span<const std::string_view> known) {
  return error_here(fmt::format("{} is not {}", shown(here()), what), name_hint(here().text, known));
}

bool Cursor::accept(std::string_view text) {
  if (!here().is(text)) return false;
  advance();
  return true;
}

bool Cursor::accept_words(std::string_view words) {
  const std::size_t start = at_;
  while (!words.empty()) {
    const std::size_t space = std::min(words.find(' '), words.size());
    if (!accept(words.substr(0, space))) {
      at_ = start;
      return false;
    }
    words.remove_prefix(std::min(space + 1, words.size()));
  }
  return true;
}

bool Cursor::expect(std::string_view text, std::string_view context) {
  return accept(text) || expected(fmt::format("'{}' {}", text, context));
}

std::optional<Word> Cursor::take_name(std::string_view noun) {
  const Token token = here();
  if (token.kind != TokenKind::word && token.kind != TokenKind::quoted)
    return expected(
        noun, token.kind == TokenKind::number ? "a name that starts with a digit is written in quotes" : "");
  advance();
  return Word{std::string(token.text), token.span};
}

std::optional<std::vector<Word>> Cursor::take_names(std::string_view noun) {
  std::vector<Word> names;
  do {
    auto name = take_name(noun);
    if (!name) return std::nullopt;
    names.push_back(std::move(*name));
  } while (accept(","));
  return names;
}

std::optional<Quantity> Cursor::take_quantity(std::string_view noun) {
  const Token token = here();
  if (token.is("-") && ahead(1).kind == TokenKind::number)
    return expected(noun, "no number in a policy is negative");
  if (token.kind != TokenKind::number) return expected(noun);
  advance();
  Quantity quantity{std::string(token.text), std::string(token.unit), token.span};
  if (quantity.unit.empty() && (here().is("tok") || here().is("tok/s"))) {
    quantity.unit = here().text;
    quantity.span.length = here().span.column + here().span.length - token.span.column;
    if (here().span.line != token.span.line) quantity.span.length = token.span.length;
    advance();
  }
  return quantity;
}

std::optional<std::pair<Quantity, Quantity>> Cursor::take_range(std::string_view noun) {
  auto low = take_quantity(noun);
  if (!low || !expect("..", "between the bounds of a range")) return std::nullopt;
  auto high = take_quantity(noun);
  if (!high) return std::nullopt;
  if (low->unit.empty()) low->unit = high->unit;
  return std::pair(std::move(*low), std::move(*high));
}

std::optional<std::vector<Quantity>> Cursor::take_quantities(std::string_view noun) {
  std::vector<Quantity> out;
  do {
    auto quantity = take_quantity(noun);
    if (!quantity) return std::nullopt;
    out.push_back(std::move(*quantity));
  } while (accept(","));
  return out;
}

}  // namespace signalbox::policy
