// A position in the tokens, and the errors met on the way. Every take_ function either moves past what it returns, or reports
// and returns nothing without moving.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster-config/policy/syntax.hpp"

namespace signalbox::policy {

/// The result of whoever has reported an error: false, or nothing.
struct Reported {
  operator bool() const { return false; }
  template <class T>
  operator std::optional<T>() const {
    return std::nullopt;
  }
};

class Cursor {
 public:
  Cursor(const std::vector<Token>& tokens, std::vector<Diagnostic>& errors)
      : tokens_(tokens), errors_(errors) {}

  const Token& here() const { return tokens_[at_]; }
  const Token& ahead(std::size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  std::size_t position() const { return at_; }
  bool at_end() const { return here().kind == TokenKind::end; }
  void advance() { at_ += !at_end(); }

  /// Moves past this word or symbol if it is here.
  bool accept(std::string_view text);
  /// Moves past these words, separated by spaces, if all of them are here.
  bool accept_words(std::string_view words);
  bool expect(std::string_view text, std::string_view context);

  /// A name, quoted or bare. `noun`: "a class".
  std::optional<Word> take_name(std::string_view noun);
  /// Names separated by commas.
  std::optional<std::vector<Word>> take_names(std::string_view noun);
  /// A number with its unit; the units "tok" and "tok/s" may stand apart.
  std::optional<Quantity> take_quantity(std::string_view noun);
  /// LOW..HIGH; a unit that stands behind the second holds for both.
  std::optional<std::pair<Quantity, Quantity>> take_range(std::string_view noun);
  std::optional<std::vector<Quantity>> take_quantities(std::string_view noun);

  Reported error(const Token& token, std::string what, std::string hint = {});
  Reported error_here(std::string what, std::string hint = {}) {
    return error(here(), std::move(what), std::move(hint));
  }
  /// "expected NOUN, found 'x'".
  Reported expected(std::string_view noun, std::string hint = {});
  /// The unknown word here, with the nearest of those that could stand.
  Reported unknown_word(std::string_view what, std::span<const std::string_view> known);

 private:
  const std::vector<Token>& tokens_;
  std::vector<Diagnostic>& errors_;
  std::size_t at_ = 0;
};

/// As it is shown in an error: "'x'", or "the end of the file".
std::string shown(const Token& token);

}  // namespace signalbox::policy
