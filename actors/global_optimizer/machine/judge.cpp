#include "actors/global_optimizer/machine/judge.hpp"

#include <fmt/format.h>

#include "optimizer/verify/verify.hpp"

namespace signalbox::global_optimizer {

namespace {

constexpr std::size_t most_told = 2;

std::vector<verify::Standing> standings_of(const Facts& facts) {
  std::vector<verify::Standing> out;
  for (std::size_t e = 0; e < facts.fleet.engines.size(); ++e) {
    const optimizer::EngineState& engine = facts.fleet.engines[e];
    out.push_back({facts.health[e], engine.availability, engine.step.b_s, engine.step.k_s, engine.step.c_s,
                   engine.kv_tokens});
  }
  return out;
}

/// What the weights in force are, and how much of them may move.
std::vector<verify::Before> before(const Facts& facts) {
  std::vector<verify::Before> out;
  std::size_t route = 0;
  for (std::size_t s = 0; s < facts.may_move.size(); ++s) {
    const optimizer::TrafficState& traffic = facts.fleet.traffic[s];
    verify::Before row{
        facts.table->clusters[traffic.cluster.at()].name, traffic.service_class, facts.may_move[s], {}};
    for (; route < facts.fleet.routes.size() && facts.fleet.routes[route].source.at() == s; ++route)
      row.weights[facts.fleet.routes[route].engine] = facts.in_force[route];
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

Status judge(const std::vector<schema::RoutingSnapshot>& plan, const Facts& facts, double coverage) {
  const auto standings = standings_of(facts);
  const auto in_force = before(facts);
  const auto violations = verify::verify({*facts.policy, *facts.table, plan, standings, coverage, in_force});
  if (violations.empty()) return {};
  std::string text = fmt::format("{}: {}", name_of(violations.front().fault), violations.front().text);
  for (std::size_t i = 1; i < std::min(violations.size(), most_told); ++i)
    text += fmt::format("; {}: {}", name_of(violations[i].fault), violations[i].text);
  if (violations.size() > most_told) text += fmt::format("; and {} more", violations.size() - most_told);
  return invalid(std::move(text));
}

}  // namespace signalbox::global_optimizer
