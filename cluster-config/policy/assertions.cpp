// What a policy says about itself, checked when it is compiled: unreachable classes, `never` rules, `test` lines.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cluster-config/policy/resolve.hpp"
#include "messages/base/nearest.hpp"

namespace signalbox::policy {
namespace {

// ------------------------------------------------------------------------------------------------------- reachability
// Every predicate of a class is constant between the bounds that the policy mentions. So it is enough to try one request per
// combination of: a tenant that each pattern means, each mentioned version and its neighbours, each criticality that may be
// asked for, each mentioned number of tokens and its neighbours.

/// Behind a prefix, this makes a name that no pattern mentions: names are printable.
constexpr char unmentioned = '\x7f';

std::vector<std::string> tenants_of(const CompiledPolicy& policy, const ClassRow& row) {
  std::vector<std::string> out;
  const auto add = [&out](const TenantPattern& p) {
    out.push_back(p.prefix ? p.text + unmentioned : p.text);
  };
  for (const TenantPattern& pattern : row.tenants) {
    add(pattern);
    if (!pattern.prefix) continue;
    for (const ClassRow& other : policy.classes)
      for (const TenantPattern& inner : other.tenants)
        if (inner.text.starts_with(pattern.text)) add(inner);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Version before(Version v) {
  if (v.minor > 0) return {v.major, v.minor - 1};
  return v.major > 0 ? Version{v.major - 1, UINT32_MAX} : v;
}
Version after(Version v) {
  if (v.minor < UINT32_MAX) return {v.major, v.minor + 1};
  return v.major < UINT32_MAX ? Version{v.major + 1, 0} : v;
}

std::vector<std::string> versions_of(const CompiledPolicy& policy, const ClassRow& row) {
  const VersionRange& declared = policy.at(row.model).versions;
  std::vector<Version> candidates{row.versions.low, declared.low, declared.high};
  for (const ClassIndex index : policy.classes_of_model[row.model.at()]) {
    const VersionRange& range = policy.at(index).versions;
    for (const Version v : {before(range.low), range.low, range.high, after(range.high)})
      candidates.push_back(v);
  }
  std::vector<std::string> out;
  for (const Version v : candidates)
    if (row.versions.contains(v) && declared.contains(v)) out.push_back(write(v));
  return out;
}

std::vector<std::uint64_t> tokens_of(const CompiledPolicy& policy, const ClassRow& row) {
  std::vector<std::uint64_t> out{row.tokens_low};
  for (const ClassIndex index : policy.classes_of_model[row.model.at()]) {
    const ClassRow& other = policy.at(index);
    const std::uint64_t low = other.tokens_low, high = other.tokens_high;
    for (const std::uint64_t t : {low - (low > 0), low, high, high + (high < unlimited_tokens)})
      if (row.tokens_low <= t && t <= row.tokens_high) out.push_back(t);
  }
  return out;
}

constexpr std::array<std::optional<Criticality>, criticality_count + 1> all_asked{
    std::nullopt, Criticality::sheddable, Criticality::standard, Criticality::critical};

// --------------------------------------------------------------------------------------------------------------- never

/// A place where an engine may stand; the last one of the list stands for all that the policy does not declare.
struct Location {
  std::string_view zone, region;
};

std::vector<Location> locations(const CompiledPolicy& policy) {
  std::vector<Location> out;
  for (const ZoneRow& zone : policy.zones)
    for (const DomainName& region : zone.regions) out.push_back({zone.name.str(), region.str()});
  out.push_back({"", ""});
  return out;
}

/// The values that a field can have; nothing if there is no such field.
std::optional<std::vector<std::string_view>> values_of(std::string_view field, const CompiledPolicy& policy) {
  std::vector<std::string_view> out;
  const auto collect = [&out](const auto& rows) {
    for (const auto& row : rows) out.push_back(row.name.str());
    return out;
  };
  if (field == "class.name") return collect(policy.classes);
  if (field == "class.model") return collect(policy.models);
  if (field == "class.criticality") return std::vector<std::string_view>{"sheddable", "standard", "critical"};
  if (field == "engine.zone") return collect(policy.zones);
  if (field == "class.residency") {
    collect(policy.zones);
    out.push_back("any");
    return out;
  }
  if (field == "engine.region") {
    for (const ZoneRow& zone : policy.zones)
      for (const DomainName& region : zone.regions) out.push_back(region.str());
    return out;
  }
  return std::nullopt;
}
constexpr std::array<std::string_view, 6> never_fields{"class.name",      "class.model", "class.criticality",
                                                       "class.residency", "engine.zone", "engine.region"};

bool resides_in(const CompiledPolicy& policy, const ClassRow& row, std::string_view zone) {
  if (row.any_zone || zone == "any") return row.any_zone && zone == "any";
  for (std::size_t z = 0; z < policy.zones.size(); ++z)
    if (row.zones.test(z) && policy.zones[z].name.str() == zone) return true;
  return false;
}

bool holds(const NeverTerm& term, const CompiledPolicy& policy, const ClassRow& row,
           const Location& location) {
  const std::string_view field = term.field.text, value = term.value.text;
  bool equal = false;
  if (field == "class.name") equal = row.name.str() == value;
  if (field == "class.model") equal = policy.at(row.model).name.str() == value;
  if (field == "class.criticality") equal = name_of(row.criticality) == value;
  if (field == "class.residency") equal = resides_in(policy, row, value);
  if (field == "engine.zone") equal = location.zone == value;
  if (field == "engine.region") equal = location.region == value;
  return equal == term.equal;
}

class Checker {
 public:
  Checker(const Document& document, const CompiledPolicy& policy, std::vector<Diagnostic>& errors)
      : doc_(document), policy_(policy), errors_(errors) {}

  void run() {
    for (std::size_t i = 0; i < policy_.classes.size(); ++i) reachable(ClassIndex(i));
    for (const NeverDecl& decl : doc_.nevers)
      if (known(decl)) never(decl);
    for (const TestDecl& decl : doc_.tests) test(decl);
  }

 private:
  void error(const Span& span, std::string what, std::string hint = {}) {
    errors_.push_back({span, std::move(what), std::move(hint)});
  }
  const Span& span_of(const ClassRow& row) const {
    return std::ranges::find(doc_.classes, row.name.str(), [](const ClassDecl& d) { return d.name.text; })
        ->name.span;
  }

  void reachable(ClassIndex index);
  bool known(const NeverDecl& decl);
  void never(const NeverDecl& decl);
  void test(const TestDecl& decl);
  void expect_within(const TestDecl& decl, const ClassRow& row);

  const Document& doc_;
  const CompiledPolicy& policy_;
  std::vector<Diagnostic>& errors_;
};

void Checker::reachable(ClassIndex index) {
  if (is_reachable(policy_, index)) return;
  const ClassRow& row = policy_.at(index);
  const std::string tenant = tenants_of(policy_, row).front();
  const std::string version = versions_of(policy_, row).front();
  RequestAttributes request{tenant, policy_.at(row.model).name.str(), version, {}, 0, row.tokens_low};
  for (const auto& asked : all_asked)
    if (row.asked.test(asked ? static_cast<std::size_t>(*asked) : criticality_count)) request.asked = asked;
  const Classified taken = policy_.classify(request);
  error(span_of(row),
        fmt::format("no request can reach class {}: earlier classes take all that it asks for", row.name),
        taken.admitted() ? fmt::format("class {} in line {} is one of them; put the narrower class first",
                                       policy_.at(taken.index).name, policy_.at(taken.index).line)
                         : "widen what it asks for");
}

bool Checker::known(const NeverDecl& decl) {
  const std::size_t errors_before = errors_.size();
  for (const NeverTerm& term : decl.terms) {
    const auto values = values_of(term.field.text, policy_);
    if (!values)
      error(term.field.span, fmt::format("'{}' is not a field", term.field.text),
            name_hint(term.field.text, never_fields));
    else if (std::ranges::find(*values, term.value.text) == values->end())
      error(term.value.span, fmt::format("{} is never '{}'", term.field.text, term.value.text),
            name_hint(term.value.text, *values));
  }
  return errors_.size() == errors_before;
}

void Checker::never(const NeverDecl& decl) {
  for (std::size_t i = 0; i < policy_.classes.size(); ++i)
    for (const Location& location : locations(policy_)) {
      const ClassRow& row = policy_.classes[i];
      if (!policy_.allows(ClassIndex(i), {"", "", location.region, location.zone})) continue;
      if (!std::ranges::all_of(decl.terms,
                               [&](const NeverTerm& t) { return holds(t, policy_, row, location); }))
        continue;
      const std::string place = location.zone.empty()
                                    ? "outside every declared zone"
                                    : fmt::format("in zone {}, region {}", location.zone, location.region);
      return error(
          decl.span,
          fmt::format("class {} (line {}) breaks this: it may be served {}", row.name, row.line, place),
          "narrow the class's residency");
    }
}

void Checker::test(const TestDecl& decl) {
  RequestAttributes request;
  if (decl.tenant) request.tenant = decl.tenant->text;
  if (decl.model) request.model = decl.model->text;
  if (decl.version) request.version = decl.version->digits;
  if (decl.asked && decl.asked->text != "none") {
    request.asked = parse_criticality(decl.asked->text);
    if (!request.asked)
      return error(decl.asked->span, fmt::format("'{}' is not a criticality", decl.asked->text));
  }
  if (decl.tokens) {
    const auto tokens = measure(decl.tokens->digits, decl.tokens->unit, Dimension::tokens);
    if (!tokens) return error(decl.tokens->span, tokens.error().what, tokens.error().hint);
    request.estimated_tokens = static_cast<std::uint64_t>(*tokens);
  }
  const Classified got = policy_.classify(request);
  const std::string outcome = got.admitted()
                                  ? policy_.at(got.index).name.str()
                                  : fmt::format("reject {} ({})", got.status, sentence_of(got.rule));
  if (decl.expected_status) {
    if (got.admitted() || decl.expected_status->digits != fmt::to_string(got.status))
      error(decl.expected_status->span, fmt::format("this test fails: the policy says {}", outcome));
    return;
  }
  if (!policy_.find_class(decl.expected_class->text)) {
    std::vector<std::string_view> names;
    for (const ClassRow& row : policy_.classes) names.push_back(row.name.str());
    return error(decl.expected_class->span,
                 fmt::format("no class '{}' is declared", decl.expected_class->text),
                 name_hint(decl.expected_class->text, names));
  }
  if (outcome != decl.expected_class->text)
    return error(decl.expected_class->span, fmt::format("this test fails: the policy says {}", outcome));
  if (!decl.within.empty()) expect_within(decl, policy_.at(got.index));
}

void Checker::expect_within(const TestDecl& decl, const ClassRow& row) {
  std::vector<std::string_view> zones;
  for (const ZoneRow& zone : policy_.zones) zones.push_back(zone.name.str());
  for (const Word& word : decl.within)
    if (std::ranges::find(zones, word.text) == zones.end())
      return error(word.span, fmt::format("no zone '{}' is declared", word.text),
                   name_hint(word.text, zones));
  if (row.any_zone)
    return error(decl.within.front().span,
                 fmt::format("this test fails: {} may be served anywhere", row.name));
  for (std::size_t z = 0; z < zones.size(); ++z)
    if (row.zones.test(z) && std::ranges::find(decl.within, zones[z], &Word::text) == decl.within.end())
      return error(decl.within.front().span,
                   fmt::format("this test fails: {} may be served in zone {}", row.name, zones[z]));
}

}  // namespace

bool is_reachable(const CompiledPolicy& policy, ClassIndex index) {
  const ClassRow& row = policy.at(index);
  const auto versions = versions_of(policy, row);
  const auto tokens = tokens_of(policy, row);
  for (const std::string& tenant : tenants_of(policy, row))
    for (const std::string& version : versions)
      for (const auto& asked : all_asked)
        for (const std::uint64_t t : tokens)
          if (policy.classify({tenant, policy.at(row.model).name.str(), version, asked, 0, t}).index == index)
            return true;
  return false;
}

void check_assertions(const Document& document, const CompiledPolicy& policy,
                      std::vector<Diagnostic>& errors) {
  Checker(document, policy, errors).run();
}

}  // namespace signalbox::policy
