#include "cluster-config/policy/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace signalbox::policy {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool starts_word(char c) { return is_letter(c) || c == '_' || c == '*'; }
constexpr bool in_word(char c) {
  return starts_word(c) || is_digit(c) || c == '.' || c == '-' || c == '/' || c == ':';
}
constexpr bool is_printable(char c) { return c >= ' ' && c <= '~'; }

// Longer symbols first.
constexpr std::array<std::string_view, 19> symbols{"..", "->", "<=", ">=", "!=", "{", "}", "(", ")", "[",
                                                   "]",  ",",  ";",  "|",  "<",  ">", "=", "+", "-"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Lexed run() {
    while (skip_space(), at_ < text_.size()) {
      if (peek() == '#')
        comment();
      else
        token();
      fresh_line_ = false;
    }
    add(TokenKind::end, {}, {}, at_);
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::string_view from(std::size_t start) const { return text_.substr(start, at_ - start); }

  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n')
        ++line_, line_start_ = at_ + 1, fresh_line_ = true;
      else if (c != ' ' && c != '\t' && c != '\r')
        return;
    }
  }

  Span span_from(std::size_t start) const {
    return {line_, static_cast<int>(start - line_start_) + 1, std::max(1, static_cast<int>(at_ - start))};
  }
  void add(TokenKind kind, std::string_view text, std::string_view unit, std::size_t start) {
    out_.tokens.push_back({kind, text, unit, span_from(start), fresh_line_});
  }
  void error(std::size_t start, std::string what, std::string hint) {
    out_.errors.push_back({span_from(start), std::move(what), std::move(hint)});
  }

  void comment() {
    const std::size_t start = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    std::string_view body = from(start);
    while (body.ends_with(' ') || body.ends_with('\r') || body.ends_with('\t')) body.remove_suffix(1);
    out_.comments.push_back({body, out_.tokens.size(), fresh_line_, line_});
  }

  void token() {
    const char c = peek();
    if (starts_word(c)) return word();
    if (is_digit(c)) return is_date() ? date() : number();
    if (c == '"') return quoted();
    for (const std::string_view symbol : symbols)
      if (text_.substr(at_).starts_with(symbol)) {
        at_ += symbol.size();
        return add(TokenKind::symbol, symbol, {}, at_ - symbol.size());
      }
    unknown();
  }

  void word() {
    const std::size_t start = at_++;
    // A star at the beginning stands alone ("0.85*capacity"); a dash belongs to the word unless it begins an arrow.
    while (text_[start] != '*' && in_word(peek()) && !(peek() == '-' && peek(1) == '>') &&
           !(peek() == '.' && peek(1) == '.'))
      ++at_;
    add(TokenKind::word, from(start), {}, start);
  }

  bool is_date() const {
    constexpr std::string_view shape = "dddd-dd-dd";
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 'd' ? !is_digit(peek(i)) : peek(i) != '-') return false;
    return !in_word(peek(shape.size()));
  }
  void date() {
    at_ += 10;
    add(TokenKind::date, from(at_ - 10), {}, at_ - 10);
  }

  void number() {
    const std::size_t start = at_;
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && is_digit(peek(1)))
      for (++at_; is_digit(peek());) ++at_;
    const std::string_view digits = from(start);
    const std::size_t unit_start = at_;
    if (peek() == '%')
      ++at_;
    else
      while (is_letter(peek()) || is_digit(peek()) || peek() == '_' || peek() == '/') ++at_;
    add(TokenKind::number, digits, from(unit_start), start);
  }

  void quoted() {
    const std::size_t start = at_++;
    while (is_printable(peek()) && peek() != '"' && peek() != '\\') ++at_;
    if (peek() != '"') {
      error(start, "this quoted name is not closed on its line",
            "names are printable ASCII without quotes and backslashes");
      add(TokenKind::quoted, text_.substr(start + 1, at_ - start - 1), {}, start);
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    ++at_;
    add(TokenKind::quoted, text_.substr(start + 1, at_ - start - 2), {}, start);
  }

  void unknown() {
    const std::size_t start = at_++;
    // The whole of a UTF-8 character, so that the rest of it is not reported again.
    while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xC0) == 0x80) ++at_;
    const char c = text_[start];
    error(start,
          is_printable(c) ? fmt::format("'{}' means nothing here", c) : "this character means nothing here",
          is_printable(c) ? "" : "a policy is written in ASCII");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t line_start_ = 0;
  bool fresh_line_ = true;
  Lexed out_;
};

}  // namespace

Lexed lex(std::string_view text) { return Lexer(text).run(); }

bool is_word(std::string_view text) {
  const Lexed lexed = lex(text);
  return lexed.errors.empty() && lexed.tokens.size() == 2 && lexed.tokens[0].kind == TokenKind::word &&
         lexed.tokens[0].text == text;
}

}  // namespace signalbox::policy
