#include "optimizer/model/problem.hpp"

#include <cmath>

#include "optimizer/model/capped.hpp"

namespace signalbox::optimizer {
namespace {

bool in_range(double value, double low, double high) {
  return value >= low && value <= high;
}  // false for NaN

/// Far beyond any real second, rate or load, and far from overflow when multiplied.
constexpr double huge = 1e12;

Status bad(std::string_view table, std::size_t row, std::string_view field, double value,
           std::string_view want) {
  return invalid(fmt::format("{} is {}, want {}", field, value, want), fmt::format("{}[{}]", table, row));
}

Status check_source(const Problem& problem, std::size_t row) {
  const Source& s = problem.sources[row];
  if (!in_range(s.demand_per_s, 0, huge))
    return bad("sources", row, "demand_per_s", s.demand_per_s, "0 to 1e12");
  if (!in_range(s.shed_cost_s, 0, huge))
    return bad("sources", row, "shed_cost_s", s.shed_cost_s, "0 to 1e12");
  if (!in_range(s.floor_fraction, 0, 1))
    return bad("sources", row, "floor_fraction", s.floor_fraction, "0 to 1");
  if (s.floor_fraction > 0 && !in_range(s.floor_shed_cost_s, s.shed_cost_s, huge))
    return bad("sources", row, "floor_shed_cost_s", s.floor_shed_cost_s, "shed_cost_s to 1e12");
  if (std::uint64_t{s.first_pair} + s.pair_count > problem.pairs.size())
    return bad("sources", row, "first_pair + pair_count", double(s.first_pair) + s.pair_count,
               "a range of pairs");
  EngineIndex last;
  for (const Pair& pair : problem.pairs_of(s)) {
    if (pair.engine.at() >= problem.engines.size())
      return bad("sources", row, "engine", pair.engine.value, "a row of engines");
    if (last.valid() && pair.engine <= last)
      return bad("sources", row, "engine", pair.engine.value, "ascending engines");
    last = pair.engine;
  }
  return {};
}

Status check_caps(const Problem& problem) {
  for (std::size_t c = 0; c < problem.caps.size(); ++c) {
    const ShareCap& cap = problem.caps[c];
    if (!in_range(cap.most, 1e-9, 1)) return bad("caps", c, "most", cap.most, "1e-9 to 1");
    if (cap.group.size() != problem.engines.size())
      return invalid(fmt::format("{} groups for {} engines", cap.group.size(), problem.engines.size()),
                     fmt::format("caps[{}]", c));
    for (const std::uint32_t group : cap.group)
      if (group >= problem.engines.size())
        return bad("caps", c, "group", group, "less than the number of engines");
    if (c > 0 && !lies_in(problem.caps[c - 1], cap))
      return invalid("its groups do not contain those of the cap before it", fmt::format("caps[{}]", c));
  }
  return {};
}

}  // namespace

Status check(const Problem& problem) {
  for (std::size_t e = 0; e < problem.engines.size(); ++e) {
    const CongestionCurve& curve = problem.engines[e].curve;
    if (!in_range(curve.q, 1e-12, huge)) return bad("engines", e, "q", curve.q, "1e-12 to 1e12");
    if (!in_range(curve.capacity, 1e-12, huge))
      return bad("engines", e, "capacity", curve.capacity, "1e-12 to 1e12");
    if (!in_range(curve.ceiling, 0, curve.capacity * 0.9999))
      return bad("engines", e, "ceiling", curve.ceiling, "0 to 0.9999 of the capacity");
  }
  for (std::size_t i = 0; i < problem.pairs.size(); ++i) {
    const Pair& pair = problem.pairs[i];
    if (!in_range(pair.cost_s, -huge, huge)) return bad("pairs", i, "cost_s", pair.cost_s, "-1e12 to 1e12");
    if (!in_range(pair.work_s, 1e-12, huge)) return bad("pairs", i, "work_s", pair.work_s, "1e-12 to 1e12");
  }
  std::uint64_t next = 0;
  for (std::size_t s = 0; s < problem.sources.size(); ++s) {
    if (auto ok = check_source(problem, s); !ok) return ok;
    if (problem.sources[s].first_pair != next)
      return bad("sources", s, "first_pair", problem.sources[s].first_pair, "the end of the row before");
    next += problem.sources[s].pair_count;
  }
  if (next != problem.pairs.size())
    return invalid(fmt::format("{} of {} pairs belong to a source", next, problem.pairs.size()), "pairs");
  if (!in_range(problem.churn_cost_s, 0, huge))
    return invalid(fmt::format("churn_cost_s is {}", problem.churn_cost_s));
  if (!problem.reference_per_s.empty() && problem.reference_per_s.size() != problem.pairs.size())
    return invalid(
        fmt::format("{} references for {} pairs", problem.reference_per_s.size(), problem.pairs.size()),
        "reference_per_s");
  for (std::size_t i = 0; i < problem.reference_per_s.size(); ++i)
    if (!in_range(problem.reference_per_s[i], 0, huge))
      return bad("reference_per_s", i, "rate", problem.reference_per_s[i], "0 to 1e12");
  return check_caps(problem);
}

}  // namespace signalbox::optimizer
