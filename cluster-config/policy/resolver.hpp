// The inside of resolve(): one member a statement, each of which looks names up, judges numbers and reports.
#pragma once

#include <fmt/format.h>

#include <map>

#include "cluster-config/policy/resolve.hpp"
#include "messages/base/nearest.hpp"

namespace signalbox::policy {

inline constexpr double most_tokens = 1e12;
inline constexpr double most_rate = 1e12;
inline constexpr double longest_shed_cost_s = 86'400;
inline constexpr double least_class_weight = 0.05, most_class_weight = 20;

/// Where each name of one kind was first said.
using Seen = std::map<std::string, int, std::less<>>;

inline double* weight_of(ObjectiveWeights& weights, std::string_view term) {
  if (term == "ttft") return &weights.ttft;
  if (term == "tpot") return &weights.tpot;
  if (term == "egress") return &weights.egress;
  if (term == "churn") return &weights.churn;
  return nullptr;
}
inline constexpr std::array<std::string_view, 4> weight_terms{"ttft", "tpot", "egress", "churn"};
inline constexpr std::array<std::string_view, 3> criticality_names{"sheddable", "standard", "critical"};

class Resolver {
 public:
  Resolver(const Document& document, std::vector<Diagnostic>& errors) : doc_(document), errors_(errors) {}

  CompiledPolicy run() {
    header();
    zones();
    models();
    objective();
    shed();  // before the classes, which take its costs
    for (const ClassDecl& decl : doc_.classes) service_class(decl);
    if (doc_.classes.empty())
      missing("class", "class NAME { tenants *  model NAME  criticality standard  residency any }");
    costs_follow_criticality();
    otherwise();
    limits();
    spreads();
    survivals();
    churn();
    reserves();
    numbers();
    retry_lists();
    out_.index();
    return std::move(out_);
  }

 private:
  void error(const Span& span, std::string what, std::string hint = {}) {
    errors_.push_back({span, std::move(what), std::move(hint)});
  }
  void missing(std::string_view statement, std::string_view example) {
    error(doc_.end, fmt::format("there is no '{}' statement", statement), fmt::format("write: {}", example));
  }
  void undeclared(const Word& word, std::string_view noun, std::span<const std::string_view> known) {
    error(word.span, fmt::format("no {} '{}' is declared", noun, word.text), name_hint(word.text, known));
  }
  void not_one_of(const Word& word, std::string_view noun, std::span<const std::string_view> known) {
    error(word.span, fmt::format("'{}' is not {}", word.text, noun), name_hint(word.text, known));
  }
  bool first_use(Seen& seen, const Word& word, std::string_view noun) {
    const auto [at, fresh] = seen.emplace(word.text, word.span.line);
    if (!fresh)
      error(word.span, fmt::format("a second {} '{}'", noun, word.text),
            fmt::format("the first is in line {}", at->second));
    return fresh;
  }
  template <class NameType>
  NameType name(const Word& word) {
    auto parsed = NameType::parse(word.text);
    if (parsed) return *parsed;
    error(word.span, parsed.error().what, parsed.error().hint);
    return {};
  }

  /// The value in base units, within [low, high]; otherwise reported.
  std::optional<double> value(const Quantity& quantity, Dimension dimension, double low, double high,
                              std::string_view what) {
    const auto measured = measure(quantity.digits, quantity.unit, dimension);
    if (!measured) {
      error(quantity.span, measured.error().what, measured.error().hint);
      return std::nullopt;
    }
    if (*measured >= low && *measured <= high) return *measured;
    error(quantity.span, fmt::format("{} is {}", what, write(*measured, dimension)),
          fmt::format("it may be {} to {}", write(low, dimension), write(high, dimension)));
    return std::nullopt;
  }
  std::optional<std::pair<double, double>> bounds(const std::pair<Quantity, Quantity>& range,
                                                  Dimension dimension, double most, std::string_view what) {
    const auto low = value(range.first, dimension, 0, most, what);
    const auto high = low ? value(range.second, dimension, 0, most, what) : std::nullopt;
    if (!low || !high) return std::nullopt;
    if (*low <= *high) return std::pair(*low, *high);
    error(range.first.span, "the range is empty", "write the lower bound first");
    return std::nullopt;
  }
  /// Shares of limits are written 0.5 or 50%.
  std::optional<double> share(const Quantity& quantity, double low, double high, std::string_view what) {
    return value(quantity, quantity.unit == "%" ? Dimension::share : Dimension::factor, low, high, what);
  }
  std::optional<Version> version(const Quantity& quantity) {
    const auto read = quantity.unit.empty() ? read_version(quantity.digits) : std::nullopt;
    if (!read)
      error(quantity.span, fmt::format("'{}{}' is not a version", quantity.digits, quantity.unit),
            "write 3 or 3.1");
    return read;
  }
  std::optional<Criticality> criticality(const Word& word) {
    const auto parsed = parse_criticality(word.text);
    if (!parsed) not_one_of(word, "a criticality", criticality_names);
    return parsed;
  }

  // Statements.
  void header();
  void zones();
  void models();
  void objective();
  void shed();
  void service_class(const ClassDecl& decl);
  void costs_follow_criticality();
  void otherwise();
  void limits();
  void spreads();
  void survivals();
  void churn();
  void reserves();
  std::optional<ClassIndex> declared_class(const Word& word);
  void numbers();
  void retry_lists();

  // Parts of a class.
  void class_model(const ClassDecl& decl, ClassRow& row);
  void class_tenants(const ClassDecl& decl, ClassRow& row);
  void class_asked(const ClassDecl& decl, ClassRow& row);
  void class_residency(const ClassDecl& decl, ClassRow& row);
  void class_numbers(const ClassDecl& decl, ClassRow& row);

  void shed_order(const ShedDecl& decl);
  void ordered(std::string_view clause, std::string_view lesser, std::string_view greater, bool may_be_equal);
  void caps_nest();
  std::vector<std::string_view> zone_names() const {
    std::vector<std::string_view> names;
    for (const ZoneRow& zone : out_.zones) names.push_back(zone.name.str());
    return names;
  }

  const Document& doc_;
  std::vector<Diagnostic>& errors_;
  CompiledPolicy out_;
  Seen models_seen_, zones_seen_, regions_seen_, classes_seen_;
};

}  // namespace signalbox::policy
