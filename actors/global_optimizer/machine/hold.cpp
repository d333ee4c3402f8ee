#include "actors/global_optimizer/machine/hold.hpp"

#include <algorithm>

#include "actors/global_optimizer/machine/caps.hpp"
#include "actors/global_optimizer/machine/ceilings.hpp"
#include "actors/global_optimizer/machine/churn.hpp"
#include "actors/global_optimizer/machine/survive.hpp"

namespace signalbox::global_optimizer {

namespace {

double room_of(const Facts& facts, EngineIndex e) {
  const optimizer::EngineState& engine = facts.fleet.engines[e.at()];
  return engine.availability / (engine.step.slowness * (engine.step.a_s + engine.step.b_s));
}

std::vector<schema::WeightRow> held_row(ClassIndex c, const std::vector<schema::WeightRow>& before,
                                        const Facts& facts, const Domains& domains,
                                        const schema::AdmitRow* admit,
                                        std::vector<schema::LimitRow>& binding) {
  std::vector<Share> row;
  double kept = 0;
  for (const EngineIndex e : facts.allowed[c.at()]) {
    Share share{.engine = e, .room = room_of(facts, e)};
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const auto& w) { return w.request_class == c && w.engine == e; });
    if (old != before.end() && share.room > 0) share.weight = old->weight;
    kept += share.weight;
    row.push_back(share);
  }
  double room = 0;
  for (const Share& share : row) room += share.room;
  if (kept <= 0 && room <= 0) return {};
  for (Share& share : row) share.weight = kept > 0 ? share.weight / kept : share.room / room;
  share_fairly(row, facts, admit ? *admit : schema::AdmitRow{});
  hold_row(row, domains, *facts.policy, c, binding);
  std::vector<schema::WeightRow> out;
  for (const Share& share : row) {
    if (share.weight <= 0) continue;
    const auto old = std::find_if(before.begin(), before.end(), [&](const auto& w) {
      return w.request_class == c && w.engine == share.engine;
    });
    out.push_back({c, share.engine, share.weight, old == before.end() ? 0 : old->planned_inflight});
  }
  return out;
}

/// The held prices, beside what the engines carry and may carry now.
void restate_prices(std::vector<schema::RoutingSnapshot>& held, const Facts& facts) {
  const auto load = loads_of(held, facts);
  for (auto& snapshot : held)
    for (auto& row : snapshot.prices) {
      const optimizer::EngineState& engine = facts.fleet.engines[row.engine.at()];
      row.planned_load = load[row.engine.at()];
      row.capacity = std::min(row.capacity, facts.policy->limits.load_ceiling * engine.availability);
      row.slowness = std::clamp(engine.step.slowness, 0.05, 100.0);
      row.binding = engine.availability < 1 ? schema::Binding::health : schema::Binding::none;
    }
}

}  // namespace

std::optional<std::vector<schema::RoutingSnapshot>> hold_plan(
    const std::vector<schema::RoutingSnapshot>& in_force, const Facts& facts, Duration period) {
  std::vector<schema::RoutingSnapshot> out;
  const Domains domains(*facts.table);
  for (const auto& cluster : facts.table->clusters) {
    const auto before = std::find_if(in_force.begin(), in_force.end(),
                                     [&](const auto& s) { return s.cluster == cluster.name; });
    if (before == in_force.end() || before->policy != facts.policy->hash ||
        before->table != facts.table->content)
      return std::nullopt;
    schema::RoutingSnapshot held = *before;
    held.kind = schema::PlanKind::hold;
    held.period = period;
    held.covers = facts.covers;
    held.weights.clear();
    held.groups.clear();
    held.limits.clear();
    for (std::size_t c = 0; c < facts.allowed.size(); ++c) {
      const auto known = std::ranges::find(held.admits, ClassIndex(c), &schema::AdmitRow::request_class);
      const auto row = held_row(ClassIndex(c), before->weights, facts, domains,
                                known == held.admits.end() ? nullptr : &*known, held.limits);
      held.weights.insert(held.weights.end(), row.begin(), row.end());
      for (auto& admit : held.admits)
        if (row.empty() && admit.request_class == ClassIndex(c)) admit.admit = 0;
    }
    out.push_back(std::move(held));
  }
  hold_survival(out, facts);
  hold_churn(out, facts);
  refuse_what_is_too_much(out, facts);
  restate_prices(out, facts);
  return out;
}

}  // namespace signalbox::global_optimizer
