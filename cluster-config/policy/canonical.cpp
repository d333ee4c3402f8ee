// A policy as the one text that says all of it: what the hash is over.
#include <fmt/format.h>

#include "cluster-config/policy/compile.hpp"
#include "cluster-config/policy/knobs.hpp"
#include "cluster-config/policy/lexer.hpp"
#include "cluster-config/policy/syntax.hpp"

namespace signalbox::policy {
namespace {

class Writer {
 public:
  explicit Writer(const CompiledPolicy& policy) : p_(policy) {}

  std::string run() {
    header();
    tables();
    for (const ClassRow& row : p_.classes) service_class(row);
    put("otherwise reject {}\n", p_.otherwise_status);
    limits();
    shed();
    numbers();
    objective();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  static std::string quoted(std::string_view text) {
    return is_word(text) ? std::string(text) : fmt::format("\"{}\"", text);
  }
  template <class Rows, class Text>
  static std::string list(const Rows& rows, Text text) {
    std::string out;
    for (const auto& row : rows) out += (out.empty() ? "" : ", ") + std::string(text(row));
    return out;
  }
  static std::string factor(double value) { return write(value, Dimension::factor); }
  static std::string share(double value) { return write(value, Dimension::share); }
  static std::string time(double value) { return write(value, Dimension::time); }

  void header() {
    put("policy {} version {}", quoted(p_.name), p_.version);
    if (!p_.owner.empty()) put(" owner {}", quoted(p_.owner));
    if (!p_.review_by.empty()) put(" review_by {}", p_.review_by);
    put("\n");
  }

  void tables() {
    if (!p_.zones.empty()) {
      put("topology {{\n");
      for (const ZoneRow& zone : p_.zones)
        put("  zone {} {{ region {} }}\n", quoted(zone.name.str()),
            list(zone.regions, [](const DomainName& region) { return quoted(region.str()); }));
      put("}}\n");
    }
    put("models {{\n");
    for (const ModelRow& model : p_.models) {
      put("  {}", quoted(model.name.str()));
      if (model.versions != VersionRange{})
        put(" versions {}{}", write(model.versions.low),
            model.versions.low == model.versions.high ? "" : ".." + write(model.versions.high));
      put("\n");
    }
    put("}}\n");
  }

  void service_class(const ClassRow& row) {
    put("class {} {{\n  tenants {}\n", quoted(row.name.str()),
        list(row.tenants, [](const TenantPattern& pattern) {
          return quoted(pattern.text + (pattern.prefix ? "*" : ""));
        }));
    put("  model {}{}\n  criticality {}\n", quoted(p_.at(row.model).name.str()), versions(row.versions),
        name_of(row.criticality));
    if (!row.asked.all()) put("  asked {}\n", asked(row));
    if (row.tokens_low != 0 || row.tokens_high != unlimited_tokens)
      put("  tokens {}..{} tok\n", row.tokens_low, row.tokens_high);
    put("  residency {}\n", residency(row));
    if (row.demand_high_tokens_per_s != std::numeric_limits<double>::infinity())
      put("  demand {}..{}\n", factor(row.demand_low_tokens_per_s),
          write(row.demand_high_tokens_per_s, Dimension::rate));
    if (row.continue_streams) put("  continue streams\n");
    if (row.ttft_weight != 1 || row.tpot_weight != 1)
      put("  weigh ttft {} tpot {}\n", factor(row.ttft_weight), factor(row.tpot_weight));
    put("  shed cost {}\n  floor {}\n}}\n", time(row.shed_cost_seconds), share(row.floor_share));
  }

  static std::string versions(const VersionRange& range) {
    if (range == VersionRange{}) return {};
    if (range.low == range.high) return " = " + write(range.low);
    if (range.high == highest_version) return " >= " + write(range.low);
    if (range.low == Version{}) return " <= " + write(range.high);
    return fmt::format(" {}..{}", write(range.low), write(range.high));
  }
  static std::string asked(const ClassRow& row) {
    std::vector<std::string_view> names;
    for (const Criticality c : all_criticalities)
      if (row.asked.test(static_cast<std::size_t>(c))) names.push_back(name_of(c));
    if (row.asked.test(criticality_count)) names.push_back("none");
    return list(names, [](std::string_view name) { return name; });
  }
  std::string residency(const ClassRow& row) const {
    if (row.any_zone) return "any";
    std::vector<std::string> names;
    for (std::size_t z = 0; z < p_.zones.size(); ++z)
      if (row.zones.test(z)) names.push_back(quoted(p_.zones[z].name.str()));
    return fmt::format("zone {}{}", fmt::join(names, ", "), row.strict ? " strict" : "");
  }

  void limits() {
    const Limits& l = p_.limits;
    put("limits {{\n");
    if (l.engine_weight_cap) put("  weight(engine) <= {}\n", factor(*l.engine_weight_cap));
    for (const auto& [level, cap] : l.domain_caps())
      if (cap) put("  weight({}) <= {}\n", name_of(level), factor(*cap));
    put("  load(engine) <= {} * capacity\n  in_flight(engine) <= {}\n", factor(l.load_ceiling),
        l.in_flight_cap);
    for (const ClassRow& row : p_.classes)
      if (row.spread_engines > 1)
        put("  spread {} >= {} engines, {} racks\n", quoted(row.name.str()), row.spread_engines,
            row.spread_racks);
    for (const Survive& s : l.survive)
      put("  survive 1 {} for criticality >= {}\n", name_of(s.level), name_of(s.from));
    if (l.churn.limited()) churn(l.churn);
    for (const Reserve& r : l.reserves)
      put("  capacity({}{}) >= {} * demand\n", quoted(p_.at(r.of).name.str()),
          r.level ? fmt::format(", {} {}", name_of(*r.level), quoted(r.place.str())) : "", factor(r.factor));
    put("}}\n");
  }

  void churn(const Churn& limit) {
    std::vector<std::string> parts;
    if (limit.per_snapshot) parts.push_back(factor(*limit.per_snapshot) + " per snapshot");
    if (limit.in_window)
      parts.push_back(fmt::format("{} per {}", factor(*limit.in_window), time(to_seconds(limit.window))));
    put("  churn L1 <= {} {}\n", fmt::join(parts, ", "), churn_exception);
  }

  void shed() {
    const auto each = [](const std::array<double, criticality_count>& values, Dimension dimension) {
      return list(all_criticalities, [&](Criticality c) {
        return fmt::format("{} {}", name_of(c), write(values[static_cast<std::size_t>(c)], dimension));
      });
    };
    put("shed order {} cost {} floor {}\n", list(p_.shed.order, [](Criticality c) { return name_of(c); }),
        each(p_.shed.cost_seconds, Dimension::time), each(p_.shed.floor_share, Dimension::share));
  }

  void numbers() {
    std::string_view clause, group;
    for (const Knob& knob : knobs()) {
      if (knob.later && knob.get(p_) == knob.get(CompiledPolicy{})) continue;
      if (knob.clause != clause) {
        finish(clause);
        clause = knob.clause, group = {};
        put("{}", clause);
      }
      if (!knob.group.empty() && knob.group != group) put(" {}", knob.group);
      group = knob.group;
      put(" {} {}", knob.word, write(knob.get(p_), knob.dimension));
      if (!knob.after.empty()) put(" {}", knob.after);
    }
    finish(clause);
  }

  /// The end of a clause: what is always so, and the lists of `retry`.
  void finish(std::string_view clause) {
    if (clause.empty()) return;
    for (const Promise& promise : promises())
      if (promise.clause == clause) put(" {}", promise.words);
    if (clause == "retry") retry_lists();
    put("\n");
  }

  void retry_lists() {
    std::vector<std::string> on;
    for (const FailureKind kind : {FailureKind::connect, FailureKind::reset, FailureKind::timeout})
      if (p_.retry.retries(kind)) on.emplace_back(name_of(kind));
    for (const std::uint16_t status : p_.retry.statuses) on.push_back(fmt::to_string(status));
    const auto& never = p_.retry.never_statuses;
    put(" on {}", on.empty() ? "nothing" : fmt::to_string(fmt::join(on, ", ")));
    put(" not on {}", never.empty() ? "nothing" : fmt::to_string(fmt::join(never, ", ")));
  }

  void objective() {
    const auto term = [this](std::string_view name, double weight, double low, double high) {
      put("  {} weight {} in [{}, {}]\n", name, factor(weight), factor(low), factor(high));
    };
    const auto& [weights, low, high] = p_.objective;
    put("objective minimize {{\n");
    term("ttft", weights.ttft, low.ttft, high.ttft);
    term("tpot", weights.tpot, low.tpot, high.tpot);
    term("egress", weights.egress, low.egress, high.egress);
    term("churn", weights.churn, low.churn, high.churn);
    put("}}\n");
  }

  const CompiledPolicy& p_;
  std::string out_;
};

}  // namespace

std::string canonical_text(const CompiledPolicy& policy) { return Writer(policy).run(); }

}  // namespace signalbox::policy
