#include <algorithm>
#include <tuple>

#include "cluster-config/policy/resolver.hpp"

namespace signalbox::policy {

void Resolver::service_class(const ClassDecl& decl) {
  if (!first_use(classes_seen_, decl.name, "class")) return;
  if (out_.classes.size() == max_classes)
    return error(decl.name.span, fmt::format("more than {} classes", max_classes));
  if (decl.name.text == "reject")
    error(decl.name.span, "a class cannot be called 'reject'", "tests use this word for refusals");
  ClassRow row;
  row.name = name<ClassName>(decl.name);
  row.line = decl.name.span.line;
  class_model(decl, row);
  class_tenants(decl, row);
  class_asked(decl, row);
  class_residency(decl, row);
  class_numbers(decl, row);
  if (row.model.valid() && !decl.broken) out_.classes.push_back(std::move(row));
}

void Resolver::class_model(const ClassDecl& decl, ClassRow& row) {
  if (!decl.model && decl.broken) return;
  if (!decl.model)
    return error(decl.name.span, fmt::format("class {} has no model", decl.name.text), "write: model NAME");
  const auto found = out_.find_model(decl.model->text);
  if (!found) {
    std::vector<std::string_view> names;
    for (const ModelRow& model : out_.models) names.push_back(model.name.str());
    return undeclared(*decl.model, "model", names);
  }
  row.model = *found;
  if (decl.version) {
    const auto v = version(*decl.version);
    const auto high = decl.version_high ? version(*decl.version_high) : v;
    if (!v || !high) return;
    if (decl.version_op != "<=") row.versions.low = *v;
    if (decl.version_op != ">=") row.versions.high = *high;
    if (row.versions.low > row.versions.high)
      return error(decl.version->span, "the range of versions is empty", "write the lower version first");
    const VersionRange& declared = out_.at(*found).versions;
    if (std::max(row.versions.low, declared.low) > std::min(row.versions.high, declared.high))
      error(decl.version->span, fmt::format("model {} has no such version", decl.model->text),
            fmt::format("it is declared with versions {}..{}", write(declared.low), write(declared.high)));
  }
}

void Resolver::class_tenants(const ClassDecl& decl, ClassRow& row) {
  if (decl.tenants.empty() && decl.broken) return;
  if (decl.tenants.empty())
    return error(decl.name.span, fmt::format("class {} has no tenants", decl.name.text), "write: tenants *");
  Seen seen;
  for (const Word& word : decl.tenants) {
    if (!first_use(seen, word, "tenant")) continue;
    const std::size_t star = word.text.find('*');
    if (star != std::string::npos && star + 1 != word.text.size()) {
      error(word.span, "a star may only end a name", "write bank_* for all names that begin with bank_");
      continue;
    }
    const bool prefix = star != std::string::npos;
    const std::string text = word.text.substr(0, star);
    if (!prefix || !text.empty()) name<TenantName>({text, word.span});
    row.tenants.push_back({text, prefix});
  }
}

void Resolver::class_asked(const ClassDecl& decl, ClassRow& row) {
  if (decl.asked.empty()) return;
  row.asked.reset();
  for (const Word& word : decl.asked) {
    if (word.text == "none") {
      row.asked.set(criticality_count);
    } else if (const auto c = criticality(word)) {
      row.asked.set(static_cast<std::size_t>(*c));
    }
  }
}

void Resolver::class_residency(const ClassDecl& decl, ClassRow& row) {
  if (!decl.criticality && !decl.broken)
    error(decl.name.span, fmt::format("class {} has no criticality", decl.name.text),
          "write: criticality standard");
  if (const auto c = decl.criticality ? criticality(*decl.criticality) : std::nullopt) row.criticality = *c;

  if (!decl.residency && decl.broken) return;
  if (!decl.residency)
    return error(decl.name.span, fmt::format("class {} has no residency", decl.name.text),
                 "write: residency any, or: residency zone NAME strict");
  row.any_zone = decl.residency->text == "any";
  row.strict = decl.strict;
  for (const Word& word : decl.zones) {
    const auto at = std::ranges::find(out_.zones, word.text, [](const ZoneRow& z) { return z.name.str(); });
    if (at == out_.zones.end())
      undeclared(word, "zone", zone_names());
    else
      row.zones.set(static_cast<std::size_t>(at - out_.zones.begin()));
  }
}

void Resolver::class_numbers(const ClassDecl& decl, ClassRow& row) {
  const auto c = static_cast<std::size_t>(row.criticality);
  row.shed_cost_seconds = out_.shed.cost_seconds[c];
  row.floor_share = out_.shed.floor_share[c];
  row.continue_streams = decl.continue_streams;
  if (decl.shed_cost)
    row.shed_cost_seconds = value(*decl.shed_cost, Dimension::time, 0.001, longest_shed_cost_s, "the cost")
                                .value_or(row.shed_cost_seconds);
  if (decl.floor)
    row.floor_share = value(*decl.floor, Dimension::share, 0, 1, "the floor").value_or(row.floor_share);
  for (const auto& [quantity, weight] :
       {std::pair(&decl.ttft_weight, &row.ttft_weight), std::pair(&decl.tpot_weight, &row.tpot_weight)})
    if (*quantity)
      *weight = value(**quantity, Dimension::factor, least_class_weight, most_class_weight, "the weight")
                    .value_or(1.0);
  if (decl.tokens) {
    if (const auto range = bounds(*decl.tokens, Dimension::tokens, most_tokens, "the number of tokens")) {
      row.tokens_low = static_cast<std::uint64_t>(range->first);
      row.tokens_high = static_cast<std::uint64_t>(range->second);
    }
  }
  if (decl.demand) {
    if (const auto range = bounds(*decl.demand, Dimension::rate, most_rate, "the demand"))
      std::tie(row.demand_low_tokens_per_s, row.demand_high_tokens_per_s) = *range;
  }
}

void Resolver::costs_follow_criticality() {
  for (const ClassDecl& decl : doc_.classes) {
    if (!decl.shed_cost) continue;
    const auto index = out_.find_class(decl.name.text);
    if (!index) continue;
    const ClassRow& row = out_.at(*index);
    for (const ClassRow& other : out_.classes) {
      const bool inverted =
          (row.criticality > other.criticality && row.shed_cost_seconds <= other.shed_cost_seconds) ||
          (row.criticality < other.criticality && row.shed_cost_seconds >= other.shed_cost_seconds);
      if (!inverted) continue;
      error(decl.shed_cost->span,
            fmt::format("{} ({}) would be refused out of order with {} ({}, {})", row.name,
                        name_of(row.criticality), other.name, name_of(other.criticality),
                        write(other.shed_cost_seconds, Dimension::time)),
            "a more critical class costs more to refuse");
      break;
    }
  }
}

}  // namespace signalbox::policy
