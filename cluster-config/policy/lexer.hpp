// Text to tokens. Words are names and keywords alike; numbers carry the unit that is written against them.
#pragma once

#include <string_view>
#include <vector>

#include "cluster-config/policy/compile.hpp"

namespace signalbox::policy {

enum class TokenKind : std::uint8_t {
  word,    ///< a name, a pattern or a keyword: * or [A-Za-z_][A-Za-z0-9_.*/:-]*
  quoted,  ///< "any printable ASCII but quotes and backslashes"
  number,  ///< 12, 0.5, 5s, 20%
  date,    ///< 2027-02-01
  symbol,
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  ///< without quotes; of a number: its digits
  std::string_view unit;  ///< of a number: what is written against it
  Span span;
  bool first_on_line = false;

  bool is(std::string_view symbol_or_word) const {
    return (kind == TokenKind::word || kind == TokenKind::symbol) && text == symbol_or_word;
  }
};

struct Comment {
  std::string_view text;  ///< with its '#', without trailing space
  std::size_t before;     ///< the token that follows it
  bool own_line;
  int line;
};

struct Lexed {
  std::vector<Token> tokens;  ///< the last one is `end`
  std::vector<Comment> comments;
  std::vector<Diagnostic> errors;
};

/// Tokens point into the text. What cannot be read is reported and skipped.
Lexed lex(std::string_view text);

/// True for text that lexes as one word.
bool is_word(std::string_view text);

}  // namespace signalbox::policy
