#include <array>

#include "cluster-config/policy/parser_impl.hpp"

namespace signalbox::policy {

bool Parser::never() {
  NeverDecl decl{cursor_.here().span, {}};
  cursor_.advance();
  do
    if (!never_term(decl)) return false;
  while (cursor_.accept("and"));
  doc_.nevers.push_back(std::move(decl));
  return true;
}

bool Parser::never_term(NeverDecl& decl) {
  auto field = cursor_.take_name("a field such as class.residency");
  if (!field) return false;
  const bool equal = cursor_.accept("=");
  if (!equal && !cursor_.accept("!=")) return cursor_.expected("'=' or '!='");
  auto value = cursor_.take_name("a name");
  if (value) decl.terms.push_back({std::move(*field), equal, std::move(*value)});
  return value.has_value();
}

bool Parser::test() {
  TestDecl decl;
  decl.span = cursor_.here().span;
  cursor_.advance();
  if (!cursor_.expect("{", "after 'test'")) return false;
  while (!cursor_.accept("}"))
    if (!test_part(decl)) return false;
  return cursor_.expect("->", "before the outcome") && test_outcome(decl);
}

bool Parser::test_part(TestDecl& decl) {
  const Token word = cursor_.here();
  if (cursor_.accept("tenant"))
    return set_once(decl.tenant, cursor_.take_name("a tenant"), word, "the tenant");
  if (cursor_.accept("model")) return set_once(decl.model, cursor_.take_name("a model"), word, "the model");
  if (cursor_.accept("version"))
    return set_once(decl.version, cursor_.take_quantity("a version"), word, "the version");
  if (cursor_.accept("asked"))
    return set_once(decl.asked, cursor_.take_name("a criticality"), word, "'asked'");
  if (cursor_.accept("tokens"))
    return set_once(decl.tokens, cursor_.take_quantity("a number of tokens"), word, "'tokens'");
  constexpr std::array<std::string_view, 5> known{"tenant", "model", "version", "asked", "tokens"};
  return cursor_.unknown_word("an attribute of a request", known);
}

bool Parser::test_outcome(TestDecl& decl) {
  if (cursor_.accept("reject")) {
    decl.expected_status = cursor_.take_quantity("a status such as 403");
    if (!decl.expected_status) return false;
  } else {
    decl.expected_class = cursor_.take_name("a class, or 'reject'");
    if (!decl.expected_class) return false;
    if (cursor_.accept("within")) {
      if (!cursor_.expect("zone", "after 'within'")) return false;
      auto zones = cursor_.take_names("a zone");
      if (!zones) return false;
      decl.within = std::move(*zones);
    }
  }
  doc_.tests.push_back(std::move(decl));
  return true;
}

}  // namespace signalbox::policy
