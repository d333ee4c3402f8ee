#include "cluster-config/policy/parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "cluster-config/policy/parser_impl.hpp"

namespace signalbox::policy {

namespace {

/// Of a text YYYY-MM-DD: whether there is such a day.
bool is_of_calendar(std::string_view date) {
  const auto number = [&](std::size_t at, std::size_t length) {
    int out = 0;
    std::from_chars(date.data() + at, date.data() + at + length, out);
    return out;
  };
  return std::chrono::year_month_day(std::chrono::year(number(0, 4)),
                                     std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                     std::chrono::day(static_cast<unsigned>(number(8, 2))))
      .ok();
}

}  // namespace

std::span<const Parser::Keyword> Parser::keywords() {
  static constexpr std::array table{
      Keyword{"policy", &Parser::header, true},
      Keyword{"topology", &Parser::topology, true},
      Keyword{"levels", &Parser::levels, true},
      Keyword{"models", &Parser::models, true},
      Keyword{"criticality", &Parser::criticality_order, true},
      Keyword{"class", &Parser::service_class, false},
      Keyword{"otherwise", &Parser::otherwise, true},
      Keyword{"limits", &Parser::limits, true},
      Keyword{"shed", &Parser::shed, true},
      Keyword{"retry", &Parser::numbers, true},
      Keyword{"penalty", &Parser::numbers, true},
      Keyword{"timeouts", &Parser::numbers, true},
      Keyword{"eject", &Parser::numbers, true},
      Keyword{"stale", &Parser::numbers, true},
      Keyword{"health", &Parser::numbers, true},
      Keyword{"lead", &Parser::numbers, true},
      Keyword{"queue", &Parser::numbers, true},
      Keyword{"cache", &Parser::numbers, true},
      Keyword{"routing", &Parser::numbers, true},
      Keyword{"objective", &Parser::objective, true},
      Keyword{"never", &Parser::never, false},
      Keyword{"test", &Parser::test, false},
  };
  return table;
}

const Parser::Keyword* Parser::keyword_of(const Token& token) {
  if (token.kind != TokenKind::word || !token.first_on_line) return nullptr;
  const auto found = std::ranges::find(keywords(), token.text, &Keyword::word);
  return found == keywords().end() ? nullptr : &*found;
}

bool Parser::at_statement() const {
  const Token& token = cursor_.here();
  const bool outermost = token.first_on_line && token.span.column == 1 && !token.is("}");
  return cursor_.at_end() || outermost || keyword_of(token);
}

void Parser::skip_statement() {
  // "criticality" begins an item of a class as well: inside one it is indented.
  while (!at_statement() || (cursor_.here().is("criticality") && cursor_.here().span.column > 1))
    cursor_.advance();
}

void Parser::skip_item() {
  do cursor_.advance();
  while (!cursor_.at_end() && !cursor_.here().first_on_line && !cursor_.here().is("}") &&
         !cursor_.here().is(";"));
}

Document Parser::run() {
  if (!cursor_.here().is("policy"))
    cursor_.error_here("a policy begins with its name and version", "write: policy NAME version 1");
  while (!cursor_.at_end()) statement();
  doc_.end = cursor_.here().span;
  return std::move(doc_);
}

void Parser::statement() {
  const Keyword* const keyword = keyword_of(cursor_.here());
  if (!keyword) return unknown_statement();
  if (keyword->once && std::ranges::count(said_, keyword->word))
    cursor_.error_here(fmt::format("a second '{}'", keyword->word), "say it once, with all its parts");
  said_.push_back(keyword->word);
  mark(MarkKind::statement);
  // What is left after a good statement is the next one's business, and an error if it begins none.
  if (!(this->*keyword->parse)()) skip_statement();
}

void Parser::unknown_statement() {
  std::vector<std::string_view> known;
  for (const Keyword& keyword : keywords()) known.push_back(keyword.word);
  if (cursor_.here().first_on_line)
    cursor_.unknown_word("the beginning of a statement", known);
  else
    cursor_.error_here(fmt::format("{} does not belong here", shown(cursor_.here())),
                       "a statement begins on a line of its own");
  cursor_.advance();
  skip_statement();
}

bool Parser::block(std::string_view name, const std::function<bool()>& item) {
  if (!cursor_.expect("{", fmt::format("after {}", name))) return false;
  while (!cursor_.accept("}")) {
    if (cursor_.accept(";")) continue;
    const Token& token = cursor_.here();
    if (cursor_.at_end() || (keyword_of(token) && token.span.column == 1))
      return cursor_.error_here(fmt::format("the block of {} is not closed", name), "add a '}'");
    mark(MarkKind::item);
    const std::size_t start = cursor_.position();
    const bool good = item();
    const bool at_next = cursor_.here().first_on_line || cursor_.here().is("}");
    if (!good && (cursor_.position() == start || !at_next)) skip_item();
  }
  return true;
}

bool Parser::header() {
  cursor_.advance();
  const Token at = cursor_.here();
  if (!set_once(doc_.name, cursor_.take_name("the policy's name"), at, "the name")) return false;
  constexpr std::array<std::string_view, 4> known{"version", "owner", "approvers", "review_by"};
  while (!at_statement()) {
    const Token word = cursor_.here();
    mark(MarkKind::part);
    if (cursor_.accept("version")) {
      if (!set_once(doc_.version, cursor_.take_quantity("the policy's version, a whole number"), word,
                    "the version"))
        return false;
    } else if (cursor_.accept("owner")) {
      if (!set_once(doc_.owner, cursor_.take_name("the owner"), word, "the owner")) return false;
    } else if (cursor_.accept("review_by")) {
      const Token date = cursor_.here();
      if (date.kind != TokenKind::date || !is_of_calendar(date.text))
        return cursor_.expected("a date, such as 2027-02-01");
      cursor_.advance();
      std::optional<Word> when(Word{std::string(date.text), date.span});
      if (!set_once(doc_.review_by, std::move(when), word, "the date of review")) return false;
    } else if (cursor_.here().is("approvers")) {
      return refuse_unenforced("approvals");
    } else {
      return cursor_.unknown_word("a part of the header", known);
    }
  }
  return true;
}

bool Parser::topology() {
  cursor_.advance();
  return block("topology", [&] { return zone_item(); });
}

bool Parser::zone_item() {
  if (!cursor_.expect("zone", "at the beginning of a zone")) return false;
  auto name = cursor_.take_name("a zone");
  if (!name || !cursor_.expect("{", "before the zone's regions") ||
      !cursor_.expect("region", "before the zone's regions"))
    return false;
  auto regions = cursor_.take_names("a region");
  if (!regions || !cursor_.expect("}", "after the zone's regions")) return false;
  doc_.zones.push_back({std::move(*name), std::move(*regions)});
  return true;
}

bool Parser::levels() {
  cursor_.advance();
  constexpr std::string_view order = "engine < rack < cluster < region < zone";
  return cursor_.accept_words(order) ||
         cursor_.error_here("the levels are not these", fmt::format("write: levels {}", order));
}

bool Parser::models() {
  cursor_.advance();
  return block("models", [&] { return model_item(); });
}

bool Parser::model_item() {
  auto name = cursor_.take_name("a model");
  if (!name) return false;
  ModelDecl decl{std::move(*name), {}, {}};
  if (cursor_.accept("versions")) {
    decl.low = cursor_.take_quantity("a version");
    if (!decl.low) return false;
    decl.high = decl.low;
    if (cursor_.accept("..") && !(decl.high = cursor_.take_quantity("a version"))) return false;
  }
  doc_.models.push_back(std::move(decl));
  return true;
}

bool Parser::criticality_order() {
  cursor_.advance();
  constexpr std::string_view order = "critical > standard > sheddable";
  return cursor_.accept_words(order) || cursor_.error_here("the order of criticality is not this",
                                                           fmt::format("write: criticality {}", order));
}

bool Parser::otherwise() {
  cursor_.advance();
  doc_.otherwise_said = true;
  if (!cursor_.expect("reject", "after 'otherwise'")) return false;
  doc_.otherwise = cursor_.take_quantity("a status such as 403");
  return doc_.otherwise.has_value();
}

Document parse(const Lexed& lexed, std::vector<Diagnostic>& errors) { return Parser(lexed, errors).run(); }

}  // namespace signalbox::policy
