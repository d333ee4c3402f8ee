// A class in words.
#include <fmt/format.h>

#include "cluster-config/policy/compiled.hpp"
#include "cluster-config/policy/quantity.hpp"

namespace signalbox::policy {
namespace {

std::string join_tenants(const ClassRow& row) {
  std::string out;
  for (const TenantPattern& pattern : row.tenants)
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", pattern.text, pattern.prefix ? "*" : "");
  return out == "*" ? "any tenant" : "tenants " + out;
}

std::string versions(const VersionRange& range) {
  const bool from = range.low > Version{}, to = range.high < highest_version;
  if (from && to && range.low == range.high) return fmt::format(" version {}", write(range.low));
  if (from && to) return fmt::format(" versions {} to {}", write(range.low), write(range.high));
  if (from) return fmt::format(" from version {}", write(range.low));
  return to ? fmt::format(" up to version {}", write(range.high)) : "";
}

std::string conditions(const ClassRow& row) {
  std::string out;
  if (!row.asked.all()) {
    std::string names = row.asked.test(criticality_count) ? "none" : "";
    for (const Criticality c : all_criticalities)
      if (row.asked.test(static_cast<std::size_t>(c)))
        fmt::format_to(std::back_inserter(names), "{}{}", names.empty() ? "" : " or ", name_of(c));
    out += fmt::format(", asking for criticality {}", names);
  }
  if (row.tokens_high != unlimited_tokens)
    out += fmt::format(", {} to {} tokens", row.tokens_low, row.tokens_high);
  return out;
}

std::string residency(const CompiledPolicy& policy, const ClassRow& row) {
  if (row.any_zone) return "may be served anywhere";
  std::string names;
  for (std::size_t z = 0; z < policy.zones.size(); ++z)
    if (row.zones.test(z)) names += (names.empty() ? "" : ", ") + policy.zones[z].name.str();
  return fmt::format("is served in zone {} only{}", names,
                     row.strict ? ", also in retry, shed, panic and degraded mode" : "");
}

std::string spread(const ClassRow& row) {
  if (row.spread_engines <= 1) return {};
  return fmt::format("  spread    over at least {} engines in {} rack{}\n", row.spread_engines,
                     row.spread_racks, row.spread_racks == 1 ? "" : "s");
}

std::string weights(const ClassRow& row) {
  if (row.ttft_weight == 1 && row.tpot_weight == 1) return {};
  return fmt::format("  weighs    a second to the first token {} times, one between tokens {} times\n",
                     write(row.ttft_weight, Dimension::factor), write(row.tpot_weight, Dimension::factor));
}

std::string demand(const ClassRow& row) {
  if (row.demand_high_tokens_per_s == std::numeric_limits<double>::infinity()) return {};
  return fmt::format("  expected  {} to {}\n", write(row.demand_low_tokens_per_s, Dimension::rate),
                     write(row.demand_high_tokens_per_s, Dimension::rate));
}

}  // namespace

std::string CompiledPolicy::explain(ClassIndex index) const {
  const ClassRow& row = at(index);
  return fmt::format(
      "class {} (policy {} version {}, line {})\n"
      "  takes     {}, model {}{}{}{}\n"
      "  gives     criticality {}; {}\n"
      "  overload  refusing one request counts as {} of latency; at least {} is admitted\n"
      "{}{}{}{}",
      row.name, name, version, row.line, join_tenants(row), at(row.model).name, versions(row.versions),
      conditions(row), index.at() > 0 ? ", unless a class above takes it" : "", name_of(row.criticality),
      residency(*this, row), write(row.shed_cost_seconds, Dimension::time),
      write(row.floor_share, Dimension::share),
      row.continue_streams ? "  streams   go on at another engine when theirs breaks\n" : "", spread(row),
      weights(row), demand(row));
}

}  // namespace signalbox::policy
