#include <array>

#include "cluster-config/policy/parser_impl.hpp"

namespace signalbox::policy {

bool Parser::service_class() {
  cursor_.advance();
  auto name = cursor_.take_name("the class's name");
  if (!name) return false;
  ClassDecl decl;
  decl.name = std::move(*name);
  const bool closed = block(fmt::format("class {}", decl.name.text), [&] {
    const bool good = class_item(decl);
    decl.broken |= !good;
    return good;
  });
  decl.broken |= !closed;
  doc_.classes.push_back(std::move(decl));
  return closed;
}

bool Parser::class_item(ClassDecl& decl) {
  const Token word = cursor_.here();
  if (cursor_.accept("tenants")) {
    auto names = cursor_.take_names("a tenant, or a beginning of names such as bank_*");
    if (!names) return false;
    if (!decl.tenants.empty()) return cursor_.error(word, "the tenants are said twice");
    decl.tenants = std::move(*names);
    return true;
  }
  if (cursor_.here().is("model")) return class_model(decl);
  if (cursor_.here().is("residency")) return class_residency(decl);
  if (cursor_.accept("weigh")) return class_weights(decl);
  if (cursor_.accept("criticality"))
    return set_once(decl.criticality, cursor_.take_name("critical, standard or sheddable"), word,
                    "the criticality");
  if (cursor_.accept("asked")) {
    auto names = cursor_.take_names("critical, standard, sheddable or none");
    if (!names) return false;
    if (!decl.asked.empty()) return cursor_.error(word, "'asked' is said twice");
    decl.asked = std::move(*names);
    return true;
  }
  if (cursor_.accept("tokens"))
    return set_once(decl.tokens, cursor_.take_range("a number of tokens"), word, "'tokens'");
  if (cursor_.accept("demand"))
    return set_once(decl.demand, cursor_.take_range("a rate such as 1200 tok/s"), word, "the demand");
  if (cursor_.accept("shed"))
    return cursor_.expect("cost", "after 'shed'") &&
           set_once(decl.shed_cost, cursor_.take_quantity("a time such as 60s"), word,
                    "the cost of shedding");
  if (cursor_.accept("floor"))
    return set_once(decl.floor, cursor_.take_quantity("a share such as 5%"), word, "the floor");
  if (cursor_.accept("continue")) {
    if (decl.continue_streams) return cursor_.error(word, "'continue streams' is said twice");
    decl.continue_streams = true;
    return cursor_.expect("streams", "after 'continue'");
  }
  constexpr std::array<std::string_view, 11> known{"tenants", "model",     "criticality", "asked",
                                                   "tokens",  "residency", "demand",      "shed",
                                                   "floor",   "continue",  "weigh"};
  return cursor_.unknown_word("a part of a class", known);
}

bool Parser::class_weights(ClassDecl& decl) {
  if (!cursor_.here().is("ttft") && !cursor_.here().is("tpot"))
    return cursor_.expected("ttft or tpot after 'weigh'");
  while (cursor_.here().is("ttft") || cursor_.here().is("tpot")) {
    const Token term = cursor_.here();
    cursor_.advance();
    if (!set_once(term.is("ttft") ? decl.ttft_weight : decl.tpot_weight,
                  cursor_.take_quantity("a factor such as 2"), term,
                  fmt::format("the weight of {}", term.text)))
      return false;
  }
  return true;
}

bool Parser::class_model(ClassDecl& decl) {
  const Token word = cursor_.here();
  cursor_.advance();
  if (!set_once(decl.model, cursor_.take_name("a model"), word, "the model")) return false;
  if (cursor_.here().is(","))
    return cursor_.error_here("a class has one model", "write one class for each model");
  for (const std::string_view op : {"=", ">=", "<="})
    if (cursor_.accept(op)) {
      decl.version_op = op;
      return (decl.version = cursor_.take_quantity("a version")).has_value();
    }
  if (cursor_.here().kind != TokenKind::number) return true;
  decl.version_op = "..";
  auto range = cursor_.take_range("a version");
  if (!range) return false;
  decl.version = std::move(range->first);
  decl.version_high = std::move(range->second);
  return true;
}

bool Parser::class_residency(ClassDecl& decl) {
  const Token word = cursor_.here();
  cursor_.advance();
  if (!cursor_.here().is("any") && !cursor_.here().is("zone")) return cursor_.expected("'any' or 'zone'");
  if (!set_once(decl.residency, cursor_.take_name("'any' or 'zone'"), word, "the residency")) return false;
  if (decl.residency->text == "any") return true;
  auto zones = cursor_.take_names("a zone");
  if (!zones) return false;
  decl.zones = std::move(*zones);
  decl.strict = cursor_.accept("strict");
  return true;
}

}  // namespace signalbox::policy
