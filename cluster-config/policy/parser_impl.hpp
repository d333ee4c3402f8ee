// The parser's inside: statements and items, each a member that moves the cursor past what it understood and returns whether
// it did; what it did not understand is reported by then.
#pragma once

#include <fmt/format.h>

#include <functional>

#include "cluster-config/policy/cursor.hpp"

namespace signalbox::policy {

class Parser {
 public:
  Parser(const Lexed& lexed, std::vector<Diagnostic>& errors) : cursor_(lexed.tokens, errors) {}
  Document run();

 private:
  using Statement = bool (Parser::*)();
  struct Keyword {
    std::string_view word;
    Statement parse;
    bool once;
  };
  static std::span<const Keyword> keywords();
  static const Keyword* keyword_of(const Token& token);

  // Statements.
  bool header();
  bool topology();
  bool levels();
  bool models();
  bool criticality_order();
  bool service_class();
  bool otherwise();
  bool limits();
  bool shed();
  bool objective();
  bool never();
  bool test();
  bool numbers();  // every clause of knobs()

  // Items.
  bool zone_item();
  bool model_item();
  bool class_item(ClassDecl& decl);
  bool class_model(ClassDecl& decl);
  bool class_weights(ClassDecl& decl);
  bool class_residency(ClassDecl& decl);
  bool limit_item();
  bool weight_limit();
  bool spread_limit();
  bool survive_limit();
  bool churn_limit();
  bool reserve_limit();
  bool objective_item();
  bool shed_part(ShedDecl& decl);
  bool test_part(TestDecl& decl);
  bool test_outcome(TestDecl& decl);
  bool number(std::string_view clause, std::string_view& group);
  bool retry_list();
  bool take_values(std::vector<CriticalityValue>& out, std::string_view noun);
  bool never_term(NeverDecl& decl);

  // A block "{ item item ... }"; an item that fails is skipped up to the next line. False when it has no braces.
  bool block(std::string_view name, const std::function<bool()>& item);
  // At a keyword that begins a line, or at anything that begins in column 1.
  bool at_statement() const;
  // A limit that nothing holds is worse than none.
  bool refuse_unenforced(std::string_view what) {
    return cursor_.error_here(fmt::format("not enforced by this version: {}", what),
                              "leave it out; nothing would hold it");
  }
  void statement();
  void unknown_statement();
  void skip_statement();
  void skip_item();
  void mark(MarkKind kind) { doc_.marks.push_back({cursor_.position(), kind}); }
  template <class T>
  bool set_once(std::optional<T>& field, std::optional<T> value, const Token& at, std::string_view what) {
    if (!value) return false;
    if (field) return cursor_.error(at, fmt::format("{} is said twice", what));
    field = std::move(value);
    return true;
  }

  Cursor cursor_;
  Document doc_;
  std::vector<std::string_view> said_;  // clauses that may stand once
};

}  // namespace signalbox::policy
