#include <algorithm>
#include <array>

#include "cluster-config/policy/parser_impl.hpp"

namespace signalbox::policy {

bool Parser::limits() {
  cursor_.advance();
  return block("limits", [&] { return limit_item(); });
}

bool Parser::limit_item() {
  if (cursor_.here().is("weight")) return weight_limit();
  if (cursor_.accept("load")) {
    if (!cursor_.accept_words("( engine ) <=")) return cursor_.expected("'(engine) <=' after 'load'");
    auto value = cursor_.take_quantity("a share of the capacity, such as 0.85");
    if (!value) return false;
    if (!cursor_.accept_words("* capacity")) return cursor_.expected("'* capacity'");
    doc_.limits.push_back({LimitKind::load, std::move(*value)});
    return true;
  }
  if (cursor_.accept("in_flight")) {
    if (!cursor_.accept_words("( engine ) <=")) return cursor_.expected("'(engine) <=' after 'in_flight'");
    auto value = cursor_.take_quantity("a number of requests");
    if (value) doc_.limits.push_back({LimitKind::in_flight, std::move(*value)});
    return value.has_value();
  }
  if (cursor_.accept("spread")) return spread_limit();
  if (cursor_.accept("survive")) return survive_limit();
  if (cursor_.here().is("churn")) return churn_limit();
  if (cursor_.accept("capacity")) return reserve_limit();
  constexpr std::array<std::string_view, 7> known{"weight",  "load",  "in_flight", "spread",
                                                  "survive", "churn", "capacity"};
  return cursor_.unknown_word("a limit", known);
}

bool Parser::weight_limit() {
  cursor_.advance();
  if (!cursor_.expect("(", "after 'weight'")) return false;
  constexpr std::array<std::pair<std::string_view, LimitKind>, 5> levels{
      {{"engine", LimitKind::engine_weight},
       {"rack", LimitKind::rack_weight},
       {"cluster", LimitKind::cluster_weight},
       {"region", LimitKind::region_weight},
       {"zone", LimitKind::zone_weight}}};
  for (const auto& [level, kind] : levels)
    if (cursor_.accept(level)) {
      if (!cursor_.expect(")", "after the level") || !cursor_.expect("<=", "before the limit")) return false;
      auto value = cursor_.take_quantity("a share such as 0.5");
      if (value) doc_.limits.push_back({kind, std::move(*value)});
      return value.has_value();
    }
  return cursor_.expected("engine, rack, cluster, region or zone");
}

bool Parser::spread_limit() {
  auto name = cursor_.take_name("a class");
  if (!name || !cursor_.expect(">=", "after the class")) return false;
  SpreadUse use{std::move(*name), {}, {}};
  do {
    const Token at = cursor_.here();
    auto count = cursor_.take_quantity("a number of engines or racks");
    if (!count) return false;
    const bool engines = cursor_.accept("engines") || cursor_.accept("engine");
    if (!engines && !cursor_.accept("racks") && !cursor_.accept("rack"))
      return cursor_.expected("engines or racks after the number");
    if (!set_once(engines ? use.engines : use.racks, std::move(count), at,
                  engines ? "the number of engines" : "the number of racks"))
      return false;
  } while (cursor_.accept(","));
  doc_.spreads.push_back(std::move(use));
  return true;
}

bool Parser::survive_limit() {
  auto count = cursor_.take_quantity("how many domains may be lost at a time: 1");
  if (!count) return false;
  auto level = cursor_.take_name("rack, cluster, region or zone");
  if (!level) return false;
  if (!cursor_.accept_words("for criticality >="))
    return cursor_.expected("'for criticality >=' after the domain");
  auto from = cursor_.take_name("critical, standard or sheddable");
  if (!from) return false;
  doc_.survivals.push_back({std::move(*count), std::move(*level), std::move(*from)});
  return true;
}

bool Parser::churn_limit() {
  const Token at = cursor_.here();
  cursor_.advance();
  if (!cursor_.accept_words("L1 <=")) return cursor_.expected("'L1 <=' after 'churn'");
  ChurnUse use;
  do {
    const Token part = cursor_.here();
    auto share = cursor_.take_quantity("a share such as 0.2");
    if (!share || !cursor_.expect("per", "after the share")) return false;
    if (cursor_.accept("snapshot")) {
      if (!set_once(use.per_snapshot, std::move(share), part, "the limit per snapshot")) return false;
      continue;
    }
    auto window = cursor_.take_quantity("'snapshot', or a time such as 60s,");
    if (!window || !set_once(use.in_window, std::move(share), part, "the limit per time")) return false;
    use.window = std::move(window);
  } while (cursor_.accept(","));
  if (cursor_.here().is("except") && !cursor_.accept_words(churn_exception))
    return cursor_.expected(fmt::format("'{}'", churn_exception));
  return set_once(doc_.churn, std::optional(std::move(use)), at, "'churn'");
}

bool Parser::reserve_limit() {
  if (!cursor_.expect("(", "after 'capacity'")) return false;
  auto name = cursor_.take_name("a class");
  if (!name) return false;
  ReserveUse use{std::move(*name), {}, {}, {}};
  if (cursor_.accept(",")) {
    use.level = cursor_.take_name("rack, cluster, region or zone");
    use.place = use.level ? cursor_.take_name("its name") : std::nullopt;
    if (!use.place) return false;
  }
  if (!cursor_.expect(")", "after the place") || !cursor_.expect(">=", "before the factor")) return false;
  auto factor = cursor_.take_quantity("a factor such as 1.3");
  if (!factor) return false;
  if (!cursor_.accept_words("* demand")) return cursor_.expected("'* demand'");
  use.factor = std::move(*factor);
  doc_.reserves.push_back(std::move(use));
  return true;
}

bool Parser::take_values(std::vector<CriticalityValue>& out, std::string_view noun) {
  do {
    auto criticality = cursor_.take_name("critical, standard or sheddable");
    if (!criticality) return false;
    auto value = cursor_.take_quantity(noun);
    if (!value) return false;
    out.push_back({std::move(*criticality), std::move(*value)});
  } while (cursor_.accept(","));
  return true;
}

bool Parser::shed() {
  cursor_.advance();
  doc_.shed.emplace();
  while (!at_statement()) {
    mark(MarkKind::part);
    if (!shed_part(*doc_.shed)) return false;
  }
  return true;
}

bool Parser::shed_part(ShedDecl& decl) {
  if (cursor_.accept("order")) {
    auto names = cursor_.take_names("sheddable, standard or critical");
    if (names) decl.order = std::move(*names);
    return names.has_value();
  }
  if (cursor_.accept("cost")) return take_values(decl.costs, "a time such as 60s");
  if (cursor_.accept("floor")) return take_values(decl.floors, "a share such as 5%");
  constexpr std::array<std::string_view, 3> known{"order", "cost", "floor"};
  if (!parse_criticality(cursor_.here().text)) return cursor_.unknown_word("a part of 'shed'", known);
  auto later = cursor_.take_name("a criticality");
  if (!cursor_.accept_words("never before")) return cursor_.expected("'never before'");
  auto earlier = cursor_.take_name("a criticality");
  if (earlier) decl.never_before.emplace_back(std::move(*later), std::move(*earlier));
  return earlier.has_value();
}

bool Parser::numbers() {
  const std::string_view clause = cursor_.here().text;
  cursor_.advance();
  std::string_view group;
  while (!at_statement()) {
    mark(MarkKind::part);
    if (!number(clause, group)) return false;
  }
  return true;
}

bool Parser::number(std::string_view clause, std::string_view& group) {
  for (const Promise& promise : promises())
    if (promise.clause == clause && cursor_.accept_words(promise.words)) return true;
  if (clause == "retry" && (cursor_.here().is("on") || cursor_.here().is("not"))) return retry_list();

  std::vector<std::string_view> known;
  for (const Knob& knob : knobs()) {
    if (knob.clause != clause) continue;
    if (!knob.group.empty() && knob.group != group && cursor_.here().is(knob.group)) {
      group = knob.group;
      cursor_.advance();
    }
    known.push_back(knob.group.empty() || knob.group == group ? knob.word : knob.group);
    if ((!knob.group.empty() && knob.group != group) || !cursor_.here().is(knob.word)) continue;
    const Token word = cursor_.here();
    cursor_.advance();
    auto value = cursor_.take_quantity(describe(knob.dimension));
    if (!value) return false;
    if (std::ranges::any_of(doc_.knobs, [&](const KnobUse& use) { return use.knob == &knob; }))
      return cursor_.error(word, fmt::format("'{}' is said twice", word.text));
    doc_.knobs.push_back({&knob, std::move(*value)});
    cursor_.accept_words(knob.after);
    return true;
  }
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return cursor_.unknown_word(fmt::format("a part of '{}'", clause), known);
}

bool Parser::retry_list() {
  const Token word = cursor_.here();
  if (cursor_.accept("not")) {
    if (!cursor_.expect("on", "after 'not'")) return false;
    if (cursor_.accept("nothing"))
      return set_once(doc_.retry_not_on, std::optional(std::vector<Quantity>{}), word, "'not on'");
    return set_once(doc_.retry_not_on, cursor_.take_quantities("a status such as 400"), word, "'not on'");
  }
  cursor_.advance();
  if (doc_.retry_on_given) return cursor_.error(word, "'on' is said twice");
  doc_.retry_on_given = true;
  if (cursor_.accept("nothing")) return true;
  do {
    const Token token = cursor_.here();
    if (token.kind != TokenKind::word && token.kind != TokenKind::number)
      return cursor_.expected("connect, reset, timeout or a status");
    cursor_.advance();
    doc_.retry_on.push_back({fmt::format("{}{}", token.text, token.unit), token.span});
  } while (cursor_.accept(","));
  return true;
}

bool Parser::objective() {
  cursor_.advance();
  cursor_.accept("minimize");
  return block("objective", [&] { return objective_item(); });
}

bool Parser::objective_item() {
  auto term = cursor_.take_name("ttft, tpot, egress or churn");
  if (!term || !cursor_.expect("weight", "after the term's name")) return false;
  auto weight = cursor_.take_quantity("a weight such as 1.0");
  if (!weight) return false;
  WeightUse use{std::move(*term), std::move(*weight), {}};
  if (cursor_.accept("in")) {
    if (!cursor_.expect("[", "before the bounds")) return false;
    auto low = cursor_.take_quantity("the least weight");
    if (!low || !cursor_.expect(",", "between the bounds")) return false;
    auto high = cursor_.take_quantity("the greatest weight");
    if (!high || !cursor_.expect("]", "after the bounds")) return false;
    use.bounds.emplace(std::move(*low), std::move(*high));
  }
  doc_.objective.push_back(std::move(use));
  return true;
}

}  // namespace signalbox::policy
