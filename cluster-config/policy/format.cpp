// The one layout: a statement a line, the items of a block a line each, comments where they were.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cluster-config/policy/compile.hpp"
#include "cluster-config/policy/parser.hpp"

namespace signalbox::policy {
namespace {

struct Line {
  struct Before {
    std::string_view comment;
    bool blank;  ///< a blank line stands before it
  };
  std::vector<Before> before;
  bool blank = false;
  int indent = 0;
  std::string text;
  std::vector<std::size_t> parts;  ///< where in the text parts begin
  std::string_view trailing;
};

bool is_tight(const Token& last, const Token& next) {
  constexpr std::array<std::string_view, 7> close{",", ";", ")", "]", "..", "|", "("};
  constexpr std::array<std::string_view, 4> open{"(", "[", "..", "|"};
  const auto is_one_of = [](const Token& token, const auto& texts) {
    return token.kind == TokenKind::symbol && std::ranges::count(texts, token.text);
  };
  return is_one_of(next, close) || is_one_of(last, open);
}

std::string spelled(const Token& token) {
  if (token.kind == TokenKind::quoted) return fmt::format("\"{}\"", token.text);
  return fmt::format("{}{}{}", token.text, token.unit.starts_with("tok") ? " " : "", token.unit);
}

class Layout {
 public:
  Layout(const Lexed& lexed, const std::vector<Mark>& marks) : lexed_(lexed), marks_(marks) {}

  std::string run() {
    lines_.emplace_back();
    for (std::size_t i = 0; i < lexed_.tokens.size(); ++i) {
      const Token& token = lexed_.tokens[i];
      trailing_comment(i);
      if (begins_line(i)) lines_.emplace_back();
      own_comments(i);
      place(i, token);
      last_source_line_ = token.span.line;
    }
    return print();
  }

 private:
  bool is_marked(std::size_t i, MarkKind kind) const {
    const auto at = std::ranges::equal_range(marks_, i, {}, &Mark::token);
    return std::ranges::count(at, kind, &Mark::kind) > 0;
  }
  /// True where this statement is a block of items.
  bool has_items(std::size_t statement) const {
    const auto next = std::ranges::upper_bound(marks_, statement, {}, &Mark::token);
    return next != marks_.end() && next->kind == MarkKind::item;
  }

  bool begins_line(std::size_t i) {
    const Token& token = lexed_.tokens[i];
    const bool statement = is_marked(i, MarkKind::statement);
    if (statement) in_block_ = has_items(i), depth_ = 0;
    if (token.kind == TokenKind::end) in_block_ = false;
    closes_ = in_block_ && depth_ == 1 && token.is("}");
    return i > 0 && (statement || is_marked(i, MarkKind::item) || closes_ || token.kind == TokenKind::end);
  }

  /// A comment behind the last token, on its line.
  void trailing_comment(std::size_t i) {
    for (; comment_ < lexed_.comments.size() && lexed_.comments[comment_].before == i &&
           !lexed_.comments[comment_].own_line;
         ++comment_) {
      Line& line = lines_.back();
      const std::string_view text = lexed_.comments[comment_].text;
      if (line.trailing.empty())
        line.trailing = text;
      else
        line.before.push_back({text, false});
      last_source_line_ = lexed_.comments[comment_].line;
    }
  }
  void own_comments(std::size_t i) {
    for (; comment_ < lexed_.comments.size() && lexed_.comments[comment_].before == i; ++comment_) {
      const Comment& comment = lexed_.comments[comment_];
      const bool fresh = lines_.back().text.empty();
      lines_.back().before.push_back({comment.text, fresh && is_gap(comment.line)});
      last_source_line_ = comment.line;
    }
  }
  bool is_gap(int line) const { return last_source_line_ > 0 && line > last_source_line_ + 1; }

  void place(std::size_t i, const Token& token) {
    Line& line = lines_.back();
    if (line.text.empty()) {
      line.indent = is_marked(i, MarkKind::item) ? 2 : 0;
      line.blank = is_gap(token.span.line) && !closes_ && token.kind != TokenKind::end;
    }
    if (token.is("{")) ++depth_;
    if (token.is("}")) --depth_;
    if (token.is(";") && in_block_ && depth_ == 1) return;
    if (!line.text.empty() && !is_tight(lexed_.tokens[i - 1], token)) line.text += ' ';
    if (is_marked(i, MarkKind::part) && !line.text.empty()) line.parts.push_back(line.text.size());
    line.text += spelled(token);
  }

  /// The text, broken before parts so that it keeps within the margin.
  static std::string wrapped(const Line& line) {
    constexpr std::size_t margin = 100;
    std::string out;
    std::size_t start = 0, column = 0;
    for (std::size_t i = 0; i <= line.parts.size(); ++i) {
      const std::size_t end = i < line.parts.size() ? line.parts[i] : line.text.size();
      const std::string_view part = std::string_view(line.text).substr(start, end - start);
      // "never" at the beginning of a line would begin a statement.
      if (column > 0 && column + part.size() > margin && !part.starts_with("never ")) {
        out.pop_back();
        out += "\n    ";
        column = 4;
      }
      out += part;
      column += part.size();
      start = end;
    }
    return out;
  }

  std::string print() const {
    std::string out;
    for (const Line& line : lines_) {
      const int indent = line.text == "}" ? 2 : line.indent;
      for (const auto& [comment, blank] : line.before)
        out += fmt::format("{}{:{}}{}\n", blank ? "\n" : "", "", indent, comment);
      if (line.text.empty()) continue;
      out += fmt::format("{}{:{}}{}{}{}\n", line.blank ? "\n" : "", "", line.indent, wrapped(line),
                         line.trailing.empty() ? "" : "  ", line.trailing);
    }
    return out;
  }

  const Lexed& lexed_;
  const std::vector<Mark>& marks_;
  std::vector<Line> lines_;
  std::size_t comment_ = 0;
  int last_source_line_ = 0;
  int depth_ = 0;
  bool in_block_ = false;
  bool closes_ = false;
};

}  // namespace

Result<std::string> format(std::string_view text) {
  if (text.size() > max_policy_bytes)
    return fail(ErrorKind::too_large, fmt::format("a policy of {} bytes", text.size()), "policy",
                fmt::format("keep it under {} bytes", max_policy_bytes));
  const Lexed lexed = lex(text);
  std::vector<Diagnostic> errors = lexed.errors;
  const Document document = parse(lexed, errors);
  if (!errors.empty())
    return invalid(errors.front().what,
                   fmt::format("{}:{}", errors.front().span.line, errors.front().span.column),
                   errors.front().hint);
  return Layout(lexed, document.marks).run();
}

}  // namespace signalbox::policy
